//! Every look at a test is one of its own, and at that test.

use std::collections::HashSet;

use serde_json::Value;

use crate::project::{Project, Python};

/// What unflake says about a project, as JSON. The hash seed is left to it.
fn run(project: &Project, arguments: &[&str]) -> Option<Value> {
    let python = Python::Plain.find()?;
    let mut words = vec!["run", "--python", python.to_str().unwrap()];
    words.extend(["--format", "json"]);
    words.extend(arguments);
    let output = project.unflake(&words).output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The runs of the only finding.
fn rows(report: &Value) -> &Vec<Value> {
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    report["findings"][0]["attempts"].as_array().unwrap()
}

/// Shapes in a set; one of them has a plain bug.
fn shapes(hash: &str) -> String {
    let names = r#""circle", "square", "hexagon", "line", "cube", "star""#;
    format!(
        "import pytest\n\n\nclass Shape:\n    def __init__(self, name):\n        self.name = name\n{hash}\n\n\
         SHAPES = {{Shape(name) for name in ({names})}}\n\n\n\
         @pytest.mark.parametrize(\"shape\", SHAPES)\n\
         def test_area(shape):\n    assert shape.name != \"hexagon\"\n"
    )
}

#[test]
fn a_plain_bug_under_a_name_that_moves_with_the_hashes_is_broken() {
    let hash = "\n    def __hash__(self):\n        return hash(self.name)\n";
    for _ in 0..3 {
        let project = Project::with(&[("test_shapes.py", &shapes(hash))]);
        let Some(report) = run(&project, &[]) else {
            return;
        };
        assert!(report["hash_seed"].as_u64().unwrap() > 0);
        assert_eq!(report["findings"][0]["verdict"], "broken", "{report}");
        assert_eq!(report["exit_code"], 1);
        for row in rows(&report) {
            // With another seed another shape has that name.
            let is_other = row["rung"] == "other-seed" && row["outcome"] == "not-run";
            assert!(is_other || row["outcome"] == "failed", "{row}");
        }
        let repeat = report["findings"][0]["repeat"].as_str().unwrap();
        let seed = format!("PYTHONHASHSEED={} unflake run ", report["hash_seed"]);
        assert!(repeat.starts_with(&seed), "{repeat}");
    }
}

#[test]
fn a_name_that_moves_with_the_addresses_never_passes_for_another() {
    for _ in 0..3 {
        let project = Project::with(&[("test_shapes.py", &shapes(""))]);
        let Some(report) = run(&project, &[]) else {
            return;
        };
        assert_ne!(report["findings"][0]["verdict"], "flaky", "{report}");
        assert_eq!(report["exit_code"], 1);
        for row in rows(&report) {
            assert_ne!(row["outcome"], "passed", "{report}");
            if row["outcome"] == "not-run" {
                let message = row["message"].as_str().unwrap();
                assert!(message.contains("another test under this name"), "{row}");
            }
        }
    }
}

/// A test that writes down what it draws, and fails until `passes` holds.
fn drawing(seeding: &str, passes: &str) -> String {
    format!(
        "import os\nimport random\n\n{seeding}\n\n\ndef test_drawn():\n    drawn = random.random()\n    \
         with open(\"drawn\", \"a+\") as file:\n        file.write(f\"{{drawn}}\\n\")\n        \
         file.seek(0)\n        count = len(file.readlines())\n    assert {passes}\n"
    )
}

#[test]
fn copies_draw_anew_from_a_generator_that_nobody_seeded() {
    let project = Project::with(&[("test_coin.py", &drawing("", "drawn < 0"))]);
    let Some(report) = run(&project, &["--fresh", "4"]) else {
        return;
    };
    let forks = rows(&report).iter().filter(|row| row["birth"] == "fork");
    assert!(forks.count() >= 3, "{report}");
    let drawn = project.read("drawn");
    let all: HashSet<&str> = drawn.lines().collect();
    assert_eq!(all.len(), drawn.lines().count(), "{drawn}");
    assert_eq!(
        report["vms"].as_array().unwrap().len(),
        1 + 1 + 3 + 1 + 1,
        "the suite, the mould, four fresh ones, another hash seed: no VM is needed to see that"
    );
}

#[test]
fn copies_keep_a_generator_that_the_project_seeds() {
    let passes = "count > 1 and drawn == 0.32383276483316237";
    let project = Project::with(&[("test_seed.py", &drawing("random.seed(7)", passes))]);
    let Some(report) = run(&project, &[]) else {
        return;
    };
    let in_copies = rows(&report).iter().filter(|row| row["birth"] == "fork");
    let in_copies: Vec<&Value> = in_copies.map(|row| &row["outcome"]).collect();
    assert_eq!(in_copies, ["passed"], "{report}");
    assert_eq!(report["findings"][0]["verdict"], "flaky");
}

#[test]
fn every_run_is_a_row() {
    for passes in ["False", "count in (2, 5)", "count == 6"] {
        let project = Project::with(&[("test_counted.py", &drawing("", passes))]);
        let Some(report) = run(&project, &[]) else {
            return;
        };
        let runs = project.read("drawn").lines().count();
        // Those in copies of the tree write there.
        let copied = ["in-order", "alone"].map(Value::from);
        let here = rows(&report)
            .iter()
            .filter(|row| !copied.contains(&row["rung"]));
        assert_eq!(here.count(), runs, "{passes}: {report}");
    }
}

#[test]
fn tests_find_the_hash_seed_of_the_user() {
    let source = "import os\nimport subprocess\nimport sys\n\n\ndef test_seen():\n    \
                  here = os.environ.get(\"PYTHONHASHSEED\")\n    \
                  ask = \"import os; print(os.environ.get('PYTHONHASHSEED'))\"\n    \
                  child = subprocess.check_output([sys.executable, \"-c\", ask], text=True).strip()\n    \
                  assert [here, child, sys.flags.hash_randomization] == 0\n";
    let project = Project::with(&[("test_seen.py", source)]);
    let Some(report) = run(&project, &[]) else {
        return;
    };
    for row in rows(&report) {
        let message = row["message"].as_str().unwrap();
        assert!(message.contains("[None, 'None', 1]"), "{message}");
    }
    let python = Python::Plain.find().unwrap();
    let words = [
        "run",
        "--python",
        python.to_str().unwrap(),
        "--format",
        "json",
    ];
    let mut command = project.unflake(&words);
    let output = command.env("PYTHONHASHSEED", "3").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["hash_seed"], Value::Null);
    for row in rows(&report) {
        let message = row["message"].as_str().unwrap();
        assert!(message.contains("['3', '3', 1]"), "{message}");
    }
    let repeat = report["findings"][0]["repeat"].as_str().unwrap();
    assert!(repeat.starts_with("unflake run"), "{repeat}");
}

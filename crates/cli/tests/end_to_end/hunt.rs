//! `unflake nio` as its users meet it: reports, recipes, selections, and a tree that stays untouched.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::{Project, Python, Run};

const ONCE: &str = r#"
import os

RUNS = []


def test_fine():
    assert True


def test_once():
    RUNS.append(1)
    with open("left.txt", "a") as left:
        left.write("x")
    assert RUNS == [1], "not twice"
"#;

const FINE: &str = "def test_fine():\n    assert True\n";

fn nio(project: &Project, folder: &Path, arguments: &[&str]) -> Option<Run> {
    let python = Python::Plain.find()?;
    let mut all = vec!["nio", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    let output = project.unflake(&all).current_dir(folder).output();
    Some(Run::of(output.expect("unflake starts")))
}

pub(crate) fn nio_json(
    project: &Project,
    folder: &Path,
    arguments: &[&str],
) -> Option<(Value, Run)> {
    let mut all = vec!["--format", "json"];
    all.extend(arguments);
    let run = nio(project, folder, &all)?;
    let json = serde_json::from_str(&run.stdout);
    Some((
        json.unwrap_or_else(|error| panic!("{error}: {run:#?}")),
        run,
    ))
}

pub(crate) fn found(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let found = findings.map(|one| {
        (
            one["id"].as_str().unwrap(),
            one["verdict"].as_str().unwrap(),
        )
    });
    found.collect()
}

#[test]
fn every_report_tells_of_both_runs_and_how_to_see_them_again() {
    let project = Project::with(&[("test_shop.py", ONCE)]);
    let arguments = ["--mode", "suite", "--junit", "report.xml"];
    let Some((report, run)) = nio_json(&project, project.path(), &arguments) else {
        return;
    };
    assert_eq!(run.code, Some(1), "{run:#?}");
    let finding = &report["findings"][0];
    assert_eq!(finding["verdict"], "nio");
    assert_eq!(finding["kind"], Value::Null);
    assert_eq!(finding["left_behind"], serde_json::json!(["left.txt"]));
    let attempts = finding["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 12, "two runs in six settings");
    for (at, attempt) in attempts.iter().enumerate() {
        let outcome = if at % 2 == 0 { "passed" } else { "failed" };
        assert_eq!(attempt["outcome"], outcome, "{attempt}");
    }
    assert_eq!(report["summary"]["nio"], 1);
    assert_eq!(report["summary"]["nio_after_others"], 0);
    let xml = project.read("report.xml");
    assert!(
        xml.contains(r#"tests="2" disabled="0" errors="0" failures="1""#),
        "{xml}"
    );
    let of = |tag: &str| xml.matches(&format!("<{tag} ")).count();
    assert_eq!((of("failure"), of("rerunFailure")), (1, 5), "{xml}");
    for part in [
        r#"<failure message="AssertionError: not twice" type="failed">"#,
        r#"message="AssertionError: not twice" type="failed (again)">"#,
        r#"<property name="unflake.verdict" value="nio"/>"#,
        r#"value="suite passed "#,
        "; confirm passed ",
        r#"<property name="unflake.repeat" value="PYTHONHASHSEED="#,
        " unflake nio ",
    ] {
        assert!(xml.contains(part), "{part} is not in {xml}");
    }
    assert!(!project.path().join("left.txt").exists());

    // The recipe, word for word, with the plain pytest of the project.
    let recipe = finding["recipe"].as_array().unwrap().iter();
    let recipe: Vec<&str> = recipe.map(|line| line.as_str().unwrap()).collect();
    let python = Python::Plain.find().unwrap();
    let path = std::env::var("PATH").unwrap();
    let shown = Command::new("sh")
        .args(["-c", &recipe.join("\n")])
        .env(
            "PATH",
            format!("{}:{path}", python.parent().unwrap().display()),
        )
        .current_dir(project.path())
        .output();
    let shown = Run::of(shown.unwrap());
    assert_eq!(shown.code, Some(1), "{shown:#?}");
    assert!(shown.stdout.contains("1 failed, 1 passed"), "{shown:#?}");

    // And our own command.
    fs::remove_file(project.path().join("left.txt")).unwrap();
    let repeat = shlex::split(finding["repeat"].as_str().unwrap()).unwrap();
    let words: Vec<&str> = repeat.iter().skip(2).map(String::as_str).collect();
    let again = Run::of(project.unflake(&words).output().unwrap());
    assert_eq!(again.code, Some(1), "{again:#?}");
    assert!(again.stdout.contains("1 test in"), "{again:#?}");
    assert!(again.stdout.contains("1 NIO"), "{again:#?}");
}

#[test]
fn a_clean_suite_is_said_to_be_clean() {
    let project = Project::with(&[("test_shop.py", FINE)]);
    for mode in ["auto", "method"] {
        let Some(run) = nio(&project, project.path(), &["--mode", mode]) else {
            return;
        };
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
}

#[test]
fn what_cannot_be_hunted_is_an_error_that_says_why() {
    let project = Project::with(&[("test_shop.py", FINE), ("empty/readme.txt", "")]);
    let broken = Project::with(&[("test_a.py", "import nowhere\n"), ("test_b.py", FINE)]);
    let cases = [
        (&project, vec!["--changed"], Some(2), "git"),
        (&project, vec!["--", "-k", "nothing"], Some(3), "no tests"),
        (&broken, vec![], Some(1), "test_a.py"),
    ];
    for (project, arguments, code, part) in cases {
        let Some(run) = nio(project, project.path(), &arguments) else {
            return;
        };
        assert_eq!(run.code, code, "{run:#?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(part), "no {part:?} in {run:#?}");
    }
}

#[test]
fn only_what_changed_is_hunted_also_in_a_subfolder_and_the_tree_stays_as_it_is() {
    let project = Project::with(&[
        ("readme.txt", "one"),
        ("shop/pytest.ini", "[pytest]\n"),
        ("shop/tests/test_old.py", ONCE),
        (
            "shop/tests/test_edited.py",
            "def test_a():\n    assert True\n\n\ndef test_b():\n    assert True\n",
        ),
    ]);
    project.commit();
    // A dirty tree: modified, staged, new and ignored files.
    project.write("readme.txt", "two");
    project.write(
        "shop/tests/test_edited.py",
        "RUNS = []\n\n\ndef test_a():\n    assert True\n\n\ndef test_b():\n    RUNS.append(1)\n    assert RUNS == [1]\n",
    );
    project.write("shop/tests/test_new.py", FINE);
    project.git(&["add", "readme.txt"]);
    let before = (
        project.git(&["status", "--porcelain=v2"]),
        tree(project.path()),
    );
    let folder = project.path().join("shop/tests");
    let Some((report, run)) = nio_json(&project, &folder, &["--changed", "--base", "HEAD"]) else {
        return;
    };
    let after = (
        project.git(&["status", "--porcelain=v2"]),
        tree(project.path()),
    );
    assert_eq!(before, after);
    assert_eq!(
        found(&report),
        [("tests/test_edited.py::test_b", "nio")],
        "{run:#?}"
    );
    let first = &report["findings"][0]["attempts"][0];
    assert_eq!(
        first["rung"], "method",
        "new and modified ones first alone: {first}"
    );
    let tests = report["tests"].as_array().unwrap().iter();
    let tests: Vec<&str> = tests.map(|test| test["id"].as_str().unwrap()).collect();
    assert_eq!(
        tests,
        [
            "tests/test_edited.py::test_b",
            "tests/test_new.py::test_fine"
        ]
    );
}

/// Every path with its content; not git's own index, which `git status` may renew.
pub(crate) fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.ends_with(".git") {
            found.push((
                String::from("config"),
                fs::read(path.join("config")).unwrap(),
            ));
        } else if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_project_that_is_imported_by_its_absolute_path_is_imported_from_the_copy() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[
        (
            "src/shop.py",
            "import pathlib\n\n\ndef sell():\n    open(pathlib.Path(__file__).with_name(\"sold\"), \"x\").close()\n",
        ),
        (
            "tests/test_shop.py",
            "import shop\n\n\ndef test_sells():\n    shop.sell()\n",
        ),
    ]);
    for mode in ["suite", "method"] {
        let before = tree(project.path());
        let arguments = [
            "nio",
            "--python",
            python.to_str().unwrap(),
            "--format",
            "json",
            "--mode",
            mode,
        ];
        let mut command = project.unflake(&arguments);
        let output = command
            .env("PYTHONPATH", project.path().join("src"))
            .output();
        let run = Run::of(output.unwrap());
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            found(&report),
            [("tests/test_shop.py::test_sells", "nio")],
            "{run:#?}"
        );
        assert_eq!(
            report["findings"][0]["left_behind"],
            serde_json::json!(["src/sold"])
        );
        assert_eq!(tree(project.path()), before);
    }
}

#[test]
fn a_tree_that_is_too_large_is_not_copied_and_that_is_said() {
    let project = Project::with(&[("test_shop.py", FINE)]);
    let large = File::create(project.path().join("large.bin")).unwrap();
    large.set_len(2 << 30).unwrap();
    let Some(run) = nio(&project, project.path(), &[]) else {
        return;
    };
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("too large to be copied"), "{run:#?}");
}

#[test]
fn options_of_the_project_that_stop_early_stop_nothing() {
    let project = Project::with(&[
        (
            "pytest.ini",
            "[pytest]\naddopts = -x --maxfail=1 -p no:cacheprovider\n",
        ),
        (
            "test_shop.py",
            "def test_broken():\n    assert False\n\n\nRUNS = []\n\n\ndef test_once():\n    RUNS.append(1)\n    assert RUNS == [1]\n",
        ),
    ]);
    for mode in ["suite", "class"] {
        let Some((report, run)) = nio_json(&project, project.path(), &["--mode", mode]) else {
            return;
        };
        let mut found = found(&report);
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("test_shop.py::test_broken", "broken"),
                ("test_shop.py::test_once", "nio")
            ],
            "{run:#?}"
        );
    }
}

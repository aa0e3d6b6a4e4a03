//! Every case in `fixtures/why` is a test: the call that makes a test there flaky is named, with the right
//! category.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::cases::{check_all, find_cases};
use crate::nio::files_of;
use crate::project::{Project, Python, Run};

/// The planted truths of a project. `docs/fixtures.md` says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    test: String,
    causes: Vec<String>,
    category: String,
    #[serde(default)]
    fuzz: bool,
    /// The ranking was not tuned on it.
    #[serde(default)]
    held_back: bool,
    /// Why rank and category do not hold yet.
    pending: Option<String>,
    /// How far down the cause may be told; 1 if nothing is said.
    #[serde(default = "first")]
    rank: usize,
}

fn first() -> usize {
    1
}

#[test]
fn every_why_fixture_has_its_planted_cause_named_where_it_should_be() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cases = find_cases("why").into_iter().flat_map(|folder| {
        let expected = fs::read_to_string(folder.join("expected.toml")).unwrap();
        let expected: Expected = toml::from_str(&expected).unwrap();
        let cases = expected.case.into_iter();
        cases
            .map(move |case| (folder.clone(), case))
            .collect::<Vec<_>>()
    });
    let cases: Vec<(PathBuf, Case)> = cases.collect();
    let held_back = cases.iter().filter(|(_, case)| case.held_back).count();
    assert!(held_back < cases.len(), "most are there to be tuned on");
    check_all(cases, |(folder, case)| check(folder, case, &python));
}

fn check(folder: &Path, case: &Case, python: &Path) -> Result<(), String> {
    let project = Project::copy_of(folder);
    let before = files_of(project.path());
    let mut arguments = vec!["--format", "json", "--plain-runs", "0", "--timeout", "60"];
    if case.fuzz {
        arguments.push("--fuzz");
    }
    arguments.push(&case.test);
    let run = why(&project, python, &arguments);
    let trouble = |what: &str| format!("{} ({}): {what}: {run:#?}", case.test, case.why);
    if run.code != Some(1) {
        return Err(trouble("the test did not fail"));
    }
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let differences = answer["failures"][0]["differences"].as_array();
    let differences = differences.map_or(&[][..], Vec::as_slice);
    let is_planted = |call: &Value| {
        let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
        let place = format!("{}:{} {}", text("file"), call["line"], text("callee"));
        case.causes.contains(&place)
    };
    let parts = ["call", "after", "wait"];
    let names = |one: &Value| parts.iter().any(|key| is_planted(&one[key]));
    let rank = differences.iter().position(names).map(|at| at + 1);
    if case.pending.is_none() && rank.is_none_or(|rank| rank > case.rank) {
        return Err(trouble(&format!("the cause has the rank {rank:?}")));
    }
    let category = &differences[rank.map_or(0, |rank| rank - 1)]["category"];
    if case.pending.is_none() && category.as_str() != Some(case.category.as_str()) {
        return Err(trouble(&format!("the category is {category}")));
    }
    if answer["cut"] != 0 || answer["varied_hash_seed"] != true {
        return Err(trouble("the runs were not as they should be"));
    }
    if case.fuzz && !answer["fuzz"]["race"].is_array() {
        return Err(trouble("no race was named"));
    }
    if files_of(project.path()) != before {
        return Err(trouble("the project's files are not as they were"));
    }
    Ok(())
}

fn why(project: &Project, python: &Path, arguments: &[&str]) -> Run {
    let mut all = vec!["why", "--no-record", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    let mut command = project.unflake(&all);
    command.env_remove("PYTHONHASHSEED");
    Run::of(command.output().unwrap())
}

#[test]
fn a_test_that_never_fails_is_not_explained_and_one_that_always_fails_neither() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let tests = "def test_fine():\n    assert str(1)\n\ndef test_bad():\n    assert not str(1)\n";
    let project = Project::with(&[("test_it.py", tests)]);
    let run = why(&project, &python, &["--runs", "2", "test_it.py::test_fine"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    // By hand: 1 - 0.05^(1/3) = 0.632, of two traced runs and a plain one.
    assert!(run.stdout.contains("less than 63.2 % of runs"), "{run:#?}");
    assert!(run.stdout.contains("Delays made no difference"), "{run:#?}");
    let run = why(&project, &python, &["--runs", "1", "test_it.py::test_bad"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stdout.contains("It never passed"), "{run:#?}");
    let run = why(&project, &python, &["test_it.py::test_gone"]);
    assert!(
        run.stderr
            .contains("there is no test `test_it.py::test_gone`")
    );
}

/// Figures 3 and 4 of the paper, with the numbers that `Random.Next` returns.
fn log(first: u32, second: u32) -> String {
    let head = "source,callee,start,end,value\n";
    let create = |line: u32, at: u32| {
        format!(
            "{line},TestAlertTest.CreateTestAlert,{at},{},null\n",
            at + 8
        )
    };
    let inside = |number: u32, at: u32| {
        format!(
            "9,Random.Next,{at},{at},{number}\n11,TestAlert.TestAlert,{},{},null\n",
            at + 2,
            at + 2
        )
    };
    let check = "6,Assert.AreNotEquals,90,91,null\n";
    let calls = [
        create(3, 10),
        inside(first, 12),
        create(4, 20),
        inside(second, 22),
    ];
    format!("{head}{}{check}", calls.concat())
}

#[test]
fn traces_of_other_tools_are_compared_as_in_the_papers_example() {
    let project = Project::new();
    for (at, (one, two)) in [(14, 16), (3, 9), (11, 2)].into_iter().enumerate() {
        project.write(&format!("passing/{at}.csv"), &log(one, two));
        project.write(&format!("failing/{at}.csv"), &log(one + 1, one + 1));
    }
    for rank in ["paper", "ours"] {
        let arguments = [
            "why", "--traces", "passing", "failing", "--rank", rank, "--format", "json",
        ];
        let run = Run::of(project.unflake(&arguments).output().unwrap());
        assert_eq!(run.code, Some(1), "{run:#?}");
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let first = &answer["failures"][0]["differences"][0];
        assert_eq!(first["call"]["line"], 9, "{rank}");
        assert_eq!(first["call"]["sequence"], 2, "{rank}");
    }
    project.write("failing/broken.trace", "PK");
    let run = project.unflake(&["why", "--traces", "passing", "failing"]);
    let run = Run::of({ run }.output().unwrap());
    assert_eq!(run.code, Some(3), "{run:#?}");
    assert!(
        run.stderr.contains("broken.trace is not a trace"),
        "{run:#?}"
    );
}

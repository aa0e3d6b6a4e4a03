//! Reports of other commands, looked into: the real pytest writes them, `unflake triage` reads them.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::project::{Project, Python, Run};

/// Fails once, then passes; fails always; and has names that need care.
const SUITE: &str = r#"
import pathlib

import pytest


def once(name):
    path = pathlib.Path(__file__).with_name(name)
    seen = path.exists()
    path.touch()
    return seen


def test_chance():
    assert once("chance")


class TestCart:
    @pytest.mark.parametrize("text", ["a::b", "it's <b> & [x]", "\x1b", "é"])
    def test_total(self, text):
        assert once(f"total-{ord(text[0])}")

    def test_broken(self):
        print("on the way")
        raise ValueError("always")


def test_fine():
    pass
"#;

fn write_report(project: &Project, python: &Path, arguments: &[&str]) {
    let mut pytest = Command::new(python);
    pytest.args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junitxml=report.xml",
    ]);
    pytest.args(arguments).current_dir(project.path());
    let status = pytest.output().expect("pytest starts").status;
    assert_eq!(status.code(), Some(1), "its tests fail");
}

fn triage(project: &Project, python: &Path, arguments: &[&str]) -> Run {
    let mut all = vec!["triage", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    Run::of(project.unflake(&all).output().expect("unflake starts"))
}

fn triage_json(project: &Project, python: &Path, arguments: &[&str]) -> (Value, Run) {
    let mut all = vec!["--format", "json"];
    all.extend(arguments);
    let run = triage(project, python, &all);
    let json = serde_json::from_str(&run.stdout);
    (
        json.unwrap_or_else(|error| panic!("{error}: {run:#?}")),
        run,
    )
}

fn verdicts(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    let mut found: Vec<(String, String)> = findings
        .map(|finding| {
            let kind = text(&finding["kind"]);
            (
                text(&finding["id"]),
                format!("{} {kind}", text(&finding["verdict"])),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn each_failure_of_a_pytest_report_is_found_and_judged() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    for family in ["xunit1", "xunit2"] {
        let project = Project::with(&[("tests/test_shop.py", SUITE)]);
        write_report(
            &project,
            &python,
            &["-o", &format!("junit_family={family}")],
        );
        let (report, run) = triage_json(&project, &python, &["report.xml"]);
        assert_eq!(run.code, Some(1), "{run:#?}");
        let found = verdicts(&report);
        assert_eq!(found.len(), 6, "{found:#?}");
        for (id, verdict) in &found {
            let expected = if id.ends_with("test_broken") {
                "broken "
            } else {
                "flaky unplaced"
            };
            assert_eq!(verdict, expected, "{id}");
        }
        assert_eq!(report["unmatched"].as_array().unwrap().len(), 0);
        let first = &report["findings"][0]["attempts"][0];
        assert_eq!(
            (first["rung"].as_str(), first["birth"].as_str()),
            (Some("report"), Some("elsewhere"))
        );
        assert!(report["findings"][0]["attempts"].as_array().unwrap().len() > 1);
    }
}

#[test]
fn a_failure_that_is_no_test_of_the_project_is_not_lost() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[
        ("a/test_x.py", "def test_it(): pass\n"),
        ("b/test_x.py", "def test_it(): pass\n"),
        (
            "pytest.ini",
            "[pytest]\naddopts = --import-mode=importlib\n",
        ),
    ]);
    project.write(
        "report.xml",
        r#"<testsuite name="other"><testcase classname="shop.Cart" name="gone"><failure/></testcase>
           <testcase classname="test_x" name="test_it"><error message="boom"/></testcase></testsuite>"#,
    );
    let run = triage(&project, &python, &["report.xml"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    for part in [
        "UNMATCHED  shop.Cart.gone",
        "no test of this project",
        "any of 2: a/test_x.py::test_it",
    ] {
        assert!(run.stdout.contains(part), "no {part:?} in {run:#?}");
    }
    assert!(run.stdout.ends_with("2 unmatched\n"), "{run:#?}");
}

#[test]
fn a_pass_says_nothing_about_an_older_report_or_another_machine() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_shop.py", SUITE), (".gitignore", "report.xml\n")]);
    let init = Command::new("git")
        .args(["init", "-q"])
        .current_dir(project.path())
        .output();
    assert!(init.unwrap().status.success());
    write_report(&project, &python, &["-k", "chance"]);
    let (report, _) = triage_json(&project, &python, &["report.xml"]);
    assert_eq!(verdicts(&report)[0].1, "flaky unplaced");

    let edited = File::options()
        .append(true)
        .open(project.path().join("test_shop.py"))
        .unwrap();
    edited
        .set_modified(SystemTime::now() + Duration::from_secs(60))
        .unwrap();
    let (report, run) = triage_json(&project, &python, &["report.xml"]);
    assert_eq!(verdicts(&report)[0].1, "unclear old-report");
    assert_eq!(run.code, Some(1));

    let xml = project.read("report.xml");
    let (head, tail) = xml.split_once("hostname=\"").unwrap();
    let (_, tail) = tail.split_once('"').unwrap();
    project.write(
        "report.xml",
        &format!("{head}hostname=\"elsewhere.example\"{tail}"),
    );
    let (report, _) = triage_json(&project, &python, &["report.xml"]);
    assert_eq!(verdicts(&report)[0].1, "unclear other-machine");
}

#[test]
fn the_projects_own_options_do_not_overwrite_the_report() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[
        ("test_shop.py", SUITE),
        ("pytest.ini", "[pytest]\naddopts = --junitxml=report.xml\n"),
    ]);
    write_report(&project, &python, &["-k", "broken"]);
    let before = project.read("report.xml");
    let run = triage(&project, &python, &["report.xml"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(
        run.stdout
            .contains("BROKEN     test_shop.py::TestCart::test_broken"),
        "{run:#?}"
    );
    assert_eq!(project.read("report.xml"), before);
    let list = project
        .unflake(&["list", "--python", python.to_str().unwrap()])
        .output();
    assert!(list.unwrap().status.success());
    assert_eq!(
        project.read("report.xml"),
        before,
        "listing writes no report either"
    );
}

#[test]
fn a_report_without_failures_is_soon_read() {
    let project = Project::new();
    project.write(
        "reports/a.xml",
        r#"<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>"#,
    );
    let run = Run::of(project.unflake(&["triage", "reports"]).output().unwrap());
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.stdout, "no failures among 2 test cases of 1 report\n");
}

#[test]
fn what_is_no_report_is_an_error_that_says_so() {
    let project = Project::with(&[
        ("empty/readme.txt", ""),
        ("page.xml", "<html/>"),
        ("cut.xml", "<testsuite><testcase"),
    ]);
    for (file, parts) in [
        (
            "nowhere.xml",
            ["cannot read the report nowhere.xml", "No such file"],
        ),
        ("page.xml", ["cannot read the report page.xml", "html"]),
        ("cut.xml", ["cannot read the report cut.xml", "line 1"]),
        ("empty", ["there is no *.xml in empty", "pytest --junitxml"]),
    ] {
        let run = Run::of(project.unflake(&["triage", file]).output().unwrap());
        assert_eq!(run.code, Some(2), "{run:#?}");
        for part in parts {
            assert!(run.stderr.contains(part), "no {part:?} in {run:#?}");
        }
    }
}

//! Reports of real runs: for machines, for GitHub, and the command that repeats a finding.

use std::process::Command;

use serde_json::Value;

use crate::project::{Project, Python, Run};

const MIXED: &str = r#"
import pathlib

import pytest

STATE = []


def test_chance():
    path = pathlib.Path(__file__).with_name("chance")
    seen = path.exists()
    path.touch()
    print("rolling")
    assert seen


def test_polluter():
    STATE.append(1)


def test_victim():
    assert not STATE


@pytest.mark.parametrize("text", ["a b", "it's <b> & %0A"])
def test_broken(text):
    print("on the way")
    assert text == ""


@pytest.mark.skip(reason="not here")
def test_skipped():
    pass
"#;

fn mixed() -> Project {
    Project::with(&[("test_mixed.py", MIXED)])
}

#[test]
fn junit_has_every_attempt_in_the_words_of_surefire() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let run = project.run(&python, &["--junit", "report.xml", "--not-known", "pass"]);
    assert_eq!(run.code, Some(1));
    let xml = project.read("report.xml");
    let count = |part: &str| xml.matches(part).count();
    assert!(
        xml.contains(r#"tests="6" disabled="1" errors="0" failures="2""#),
        "{xml}"
    );
    assert!(xml.contains(r#"flakes="2""#), "{xml}");
    assert_eq!(
        count("<flakyFailure"),
        1 + 3,
        "chance once; the victim thrice: {xml}"
    );
    assert_eq!(count("<failure"), 2, "{xml}");
    assert_eq!(count("<rerunFailure"), 2 * 7, "{xml}");
    assert!(
        xml.contains(r#"classname="test_mixed" name="test_broken[a b]""#)
            || xml.contains(r#"name="test_broken[a b]" classname="test_mixed""#),
        "{xml}"
    );
    assert!(
        xml.contains("on the way") && xml.contains("rolling"),
        "{xml}"
    );
    assert_eq!(
        count("on the way\n\n---"),
        0,
        "a rerun does not repeat old output"
    );
    assert!(!xml.contains("it's <b>"), "names are escaped: {xml}");
}

#[test]
fn a_failure_that_is_not_forgiven_is_a_failure_in_junit() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let run = project.run(&python, &["--junit", "report.xml"]);
    assert_eq!(run.code, Some(1));
    let xml = project.read("report.xml");
    assert_eq!(xml.matches("<flakyFailure").count(), 0, "{xml}");
    assert_eq!(xml.matches("<failure").count(), 4, "{xml}");
    let whose = r#"<property name="unflake.whose" value="not-known"/>"#;
    assert_eq!(xml.matches(whose).count(), 4, "{xml}");
}

#[test]
fn a_flaky_test_is_a_failure_in_junit_when_the_policy_says_so() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let arguments = ["--flaky", "fail", "--format", "junit", "--", "-k", "chance"];
    let run = project.run(&python, &arguments);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(
        run.stdout.contains(r#"<failure message="flaky: "#),
        "{run:#?}"
    );
}

#[test]
fn the_policy_decides_the_exit_code_of_flaky_failures() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let code = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--", "-k", "chance or polluter or victim"]);
        mixed().run(&python, &all).code
    };
    // Outside a repository it is not known whose they are.
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--not-known", "pass"]), Some(0));
    assert_eq!(code(&["--not-known", "pass", "--flaky", "fail"]), Some(1));
    assert_eq!(code(&["--not-known", "pass", "--max-flaky", "2"]), Some(0));
    assert_eq!(code(&["--not-known", "pass", "--max-flaky", "1"]), Some(1));
}

#[test]
fn the_command_of_each_finding_shows_it_again() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let (report, _) = project.run_json(&python, &[]);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 4);
    for finding in findings {
        project.write("chance-again", "");
        // Chance needs its first time again.
        drop(std::fs::remove_file(project.path().join("chance")));
        let repeat = finding["repeat"].as_str().unwrap();
        let shell = format!("{repeat} --format json").replacen(" run ", " run --format json ", 1);
        let shell = shell.trim_end_matches(" --format json");
        let mut command = Command::new("sh");
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_unflake"))
            .parent()
            .unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let command = command.args(["-c", shell]).current_dir(project.path());
        let run = Run::of(command.env("PATH", path).output().unwrap());
        let again: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
        let same = again["findings"].as_array().unwrap().iter().any(|one| {
            one["id"] == finding["id"]
                && one["verdict"] == finding["verdict"]
                && one["kind"] == finding["kind"]
        });
        assert!(same, "{repeat}\n{run:#?}");
    }
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let python = python.to_str().unwrap();
    let summary = project.path().join("summary.md");
    let run_with = |not_known: &str| {
        drop(std::fs::remove_file(project.path().join("chance")));
        drop(std::fs::remove_file(&summary));
        let mut command = project.unflake(&["run", "--python", python, "--not-known", not_known]);
        let command = command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_WORKSPACE", project.path());
        Run::of(command.output().unwrap())
    };
    // What is forgiven is a warning, and all else an error.
    let place = "file=test_mixed.py,line=9,title=flaky%3A test_mixed.py%3A%3Atest_chance::";
    let run = run_with("fail");
    assert!(run.stderr.contains(&format!("::error {place}")), "{run:#?}");
    let run = run_with("pass");
    assert!(
        run.stderr.contains(&format!("::warning {place}")),
        "{run:#?}"
    );
    assert!(
        run.stderr.contains("::error file=test_mixed.py,line=25,"),
        "{run:#?}"
    );
    let text = project.read("summary.md");
    assert!(
        text.starts_with("## unflake: 2 failures, 2 flaky (4 not known whose)\n"),
        "{text}"
    );
    assert!(text.contains("it's &lt;b&gt; &amp; %0A"), "{text}");
}

#[test]
fn json_holds_the_order_in_which_each_vm_ran_its_tests() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (report, _) = mixed().run_json(&python, &["--", "-k", "polluter or victim"]);
    assert_eq!(report["schema"], "unflake.run/2");
    let order = &report["vms"][0]["order"];
    let names: Vec<&str> = order
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let (polluter, victim) = ("test_mixed.py::test_polluter", "test_mixed.py::test_victim");
    assert_eq!(names, [polluter, victim, victim, victim]);
    assert_eq!(report["findings"][0]["attempts"][0]["before"], 1);
    assert!(report["costs"]["break_even_fork"].as_f64().unwrap() > 0.0);
}

#[test]
fn list_shows_the_tests_in_the_frameworks_order() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = mixed();
    let python = python.to_str().unwrap();
    let run = Run::of(
        project
            .unflake(&["list", "--python", python])
            .output()
            .unwrap(),
    );
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stdout.lines().count(), 6);
    assert_eq!(
        run.stdout.lines().nth(3),
        Some("test_mixed.py::test_broken[a b]")
    );
    let arguments = [
        "list", "--python", python, "--format", "json", "--", "-k", "chance",
    ];
    let run = Run::of(project.unflake(&arguments).output().unwrap());
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(list["tests"][0]["id"], "test_mixed.py::test_chance");
    assert_eq!(list["tests"][0]["line"], 9);
}

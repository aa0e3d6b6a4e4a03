//! What is recorded by itself, what is imported, and what the history answers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use unflake_history::engine::{self, Missing};

use crate::project::{Project, Python, Run};

/// unflake with the history where users have it: in the project.
pub(crate) fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.unflake(arguments);
    command.env_remove("UNFLAKE_STORE");
    command
}

pub(crate) fn unflake(project: &Project, arguments: &[&str]) -> Run {
    Run::of(command(project, arguments).output().unwrap())
}

fn run_tests(project: &Project, python: &Path, arguments: &[&str]) -> Run {
    let mut all = vec!["run", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    unflake(project, &all)
}

pub(crate) fn json(project: &Project, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.extend(["--format", "json"]);
    let run = unflake(project, &all);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:#?}"))
}

const FLAKY: &str = "
import pathlib
def test_fine(): pass
def test_flaky():
    mark = pathlib.Path('mark')
    if not mark.exists():
        mark.write_text('')
        assert 17 == 4, 'not yet'
";

#[test]
fn a_run_is_in_the_history_with_every_attempt_and_its_verdict() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_it.py", FLAKY)]);
    project.commit();
    let run = run_tests(&project, &python, &["--not-known", "pass"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(project.read(".unflake/.gitignore").contains('*'));
    assert!(!project.git(&["status", "--porcelain"]).contains(".unflake"));
    let rates = json(
        &project,
        &["rates", "--flaky-rule", "verdict", "--branch", "*"],
    );
    assert_eq!(rates["summary"]["tests"], 2);
    let worst = &rates["tests"][0];
    assert_eq!(worst["test"], "test_it.py::test_flaky");
    assert_eq!(
        (&worst["runs"], &worst["flaky_failures"]),
        (&1.into(), &1.into())
    );
    let path = project.path().join(".unflake/history.db");
    let store = engine::open(&path, Missing::Refuse).unwrap();
    let tests = store.tests().unwrap();
    let flaky = tests.iter().find(|(_, test)| test.name.ends_with("flaky"));
    let runs = store.runs_of(&[flaky.unwrap().0], i64::MIN, i64::MAX);
    let failure = &runs.unwrap()[0];
    assert_eq!(
        failure.fingerprint.as_deref(),
        Some("1|failed|AssertionError|test_flaky:assert 17 == 4, 'not yet'|not yet")
    );
    let past = store.past_of(failure.number).unwrap().unwrap();
    assert_eq!(past.len(), 1, "{past:?}");
    assert_eq!(past[0].name, "test_it.py::test_fine");
    drop(store);
    run_tests(&project, &python, &["--no-record"]);
    let again = json(&project, &["rates", "--branch", "*"]);
    assert_eq!(again["summary"]["runs"], 2, "--no-record adds nothing");
}

#[test]
fn nio_and_order_are_experiments_that_do_not_count() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_it.py", "def test_a(): pass\ndef test_b(): pass\n")]);
    for verb in ["nio", "order"] {
        let run = unflake(&project, &[verb, "--python", python.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
    let rates = unflake(&project, &["rates"]);
    assert!(
        rates.stderr.contains("the history has no runs"),
        "{rates:#?}"
    );
}

#[test]
fn a_history_that_cannot_be_written_costs_the_run_nothing_but_a_word() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[
        ("test_it.py", "def test_a(): pass\n"),
        (".unflake", "a file\n"),
    ]);
    let run = run_tests(&project, &python, &[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stderr.contains("these runs are not in the history"),
        "{run:#?}"
    );
}

#[test]
fn reports_are_recorded_once_and_a_broken_one_loses_no_other() {
    let project = Project::with(&[
        (
            "reports/a.xml",
            "<testsuite timestamp='2025-01-01T10:00:00'><testcase classname='c' name='t'/></testsuite>",
        ),
        (
            "reports/deep/b.csv",
            "test,time,verdict\nx,2025-01-02,failed\nx,nonsense,failed\n",
        ),
        ("reports/broken.xml", "<testsuite>"),
    ]);
    let run = unflake(&project, &["record", "reports"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(
        run.stdout.contains(
            "2 runs added from 2 of 3 files; 0 had been added before, 1 could not be read"
        )
    );
    assert!(
        run.stdout
            .contains("left out 1: a time that cannot be read (first: line 3)"),
        "{run:#?}"
    );
    let named = ["record", "none/*.xml", "reports/*.xml", "reports/deep"];
    let again = json(&project, &named);
    assert_eq!(again["runs"], 0);
    let results: Vec<&Value> = again["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["result"])
        .collect();
    assert_eq!(results, ["failed", "known", "failed", "known"]);
    assert_eq!(again["files"][0]["error"], "no file is there");
    let mut piped = command(&project, &["record", "--input", "csv", "-"]);
    let mut piped = piped
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(
        &mut piped.stdin.take().unwrap(),
        b"test,time,verdict\ny,2025-01-02,ok\n",
    )
    .unwrap();
    assert!(piped.wait().unwrap().success());
    assert_eq!(json(&project, &["rates"])["summary"]["tests"], 3);
}

/// A small history with faults in it.
fn simulated() -> Project {
    let project = Project::new();
    let run = unflake(
        &project,
        &[
            "simulate",
            "--store",
            ".unflake/history.db",
            "--tests",
            "300",
            "--runs",
            "150000",
            "--faults",
            "10",
            "--truth",
            "truth.json",
        ],
    );
    assert_eq!(run.code, Some(0), "{run:#?}");
    project
}

#[test]
fn every_question_has_an_answer_for_people_for_machines_and_as_a_plot() {
    let project = simulated();
    for (verb, code) in [
        ("rates", 0),
        ("confidence", 0),
        ("unstable", 1),
        ("next", 0),
    ] {
        let people = unflake(&project, &[verb, "--release", "D"]);
        assert_eq!(people.code, Some(code), "{people:#?}");
        assert!(
            people.stdout.contains("release D (")
                && people.stdout.contains("--flaky-rule evidence")
        );
        let machine = json(&project, &[verb, "--release", "D"]);
        let version = if verb == "next" { 2 } else { 1 };
        assert_eq!(machine["schema"], format!("unflake.{verb}/{version}"));
        assert_eq!(machine["flaky_rule"], "evidence");
        assert_eq!(machine["periods"]["baseline_release"], "C");
    }
    for verb in ["rates", "confidence", "unstable", "next --replay"] {
        let mut words: Vec<&str> = verb.split(' ').collect();
        words.extend(["--release", "D", "--svg", "plot.svg"]);
        unflake(&project, &words);
        assert!(project.read("plot.svg").starts_with("<svg"), "{verb}");
        fs::remove_file(project.path().join("plot.svg")).unwrap();
    }
    // Where nothing is drawn, nothing is promised.
    for verb in ["next", "anomalies"] {
        let refused = unflake(&project, &[verb, "--svg", "plot.svg"]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
    }
    let anomalies = json(&project, &["anomalies"]);
    assert_eq!(anomalies["schema"], "unflake.anomalies/1");
    let replay = json(&project, &["next", "--replay", "--release", "D"]);
    let orders = replay["orders"].as_array().unwrap();
    assert_eq!(orders.len(), 3);
    for order in orders {
        let last = order["stability"].as_array().unwrap().last().unwrap();
        assert!(
            last[1].as_f64().unwrap().abs() < 1e-6,
            "all runs used: the sums are equal: {last}"
        );
    }
}

#[test]
fn planted_faults_are_found_and_the_paper_alarms_more_often_than_it_should() {
    let project = simulated();
    let truth: Value = serde_json::from_str(&project.read("truth.json")).unwrap();
    let faulty: Vec<&str> = truth["faults"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|fault| fault["release"] == "C")
        .flat_map(|fault| fault["tests"].as_array().unwrap())
        .map(|test| test.as_str().unwrap())
        .collect();
    let flagged = |mode: &str| -> (usize, usize) {
        let found = json(
            &project,
            &["unstable", "--release", "C", "--mode", mode, "-n", "0"],
        );
        let tests = found["tests"].as_array().unwrap();
        let hits = tests
            .iter()
            .filter(|test| faulty.contains(&test["test"].as_str().unwrap()));
        (hits.count(), tests.len())
    };
    let (paper_hits, paper_all) = flagged("paper");
    let (hits, all) = flagged("sequential");
    assert!(hits * 10 >= paper_hits * 7, "{hits} of {paper_hits}");
    assert!(
        all - hits < (paper_all - paper_hits) / 2,
        "{all} {hits}, {paper_all} {paper_hits}"
    );
}

#[test]
fn of_a_failure_without_a_baseline_nothing_is_said() {
    let table = "test,time,verdict\nnew,2025-01-01,failed\nfine,2025-01-01,ok\n";
    let project = Project::with(&[("a.csv", table)]);
    let recorded = unflake(&project, &["record", "a.csv"]);
    assert_eq!((recorded.code, recorded.stderr.as_str()), (Some(0), ""));
    let people = unflake(&project, &["unstable"]);
    assert_eq!(people.code, Some(0), "{people:#?}");
    assert!(!people.stdout.contains("need no look"), "{people:#?}");
    assert!(people.stdout.contains("2 have no baseline"), "{people:#?}");
    // Trouble is told once where nobody watches.
    let again = unflake(&project, &["record", "a.csv"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert!(again.stdout.contains("known"), "{again:#?}");
}

#[test]
fn trouble_with_a_history_is_explained() {
    let project = Project::with(&[(
        "text.db",
        "no database at all, but long enough to be read as a page",
    )]);
    let missing = unflake(&project, &["rates"]);
    assert_eq!(missing.code, Some(3));
    assert!(
        missing.stderr.contains("there is no history at")
            && missing.stderr.contains("unflake record")
    );
    let damaged = unflake(&project, &["rates", "--store", "text.db"]);
    assert!(
        damaged
            .stderr
            .contains("is damaged, or no history of unflake"),
        "{damaged:#?}"
    );
    assert!(
        project.read("text.db").starts_with("no database"),
        "it is not touched"
    );
    project.write("t.csv", "test,time,verdict,release\na,2025-01-01,ok,R1\n");
    unflake(&project, &["record", "t.csv"]);
    let unknown = unflake(&project, &["rates", "--release", "R9"]);
    assert!(
        unknown
            .stderr
            .contains("no release `R9` in the history; there are: R1"),
        "{unknown:#?}"
    );
    let date = unflake(&project, &["rates", "--as-of", "soon"]);
    assert_eq!(
        (date.code, date.stderr.contains("`soon` is no date")),
        (Some(2), true)
    );
}

#[test]
fn next_runs_the_tests_and_writes_down_how_they_ended() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_it.py", "def test_a(): pass\ndef test_b(): assert 0\n")]);
    let table = "test,time,verdict\ntest_it.test_a,2025-01-01,ok\ntest_it.test_b,2025-01-01,ok\n";
    project.write("t.csv", table);
    unflake(&project, &["record", "t.csv"]);
    let run = unflake(
        &project,
        &[
            "next",
            "--run",
            "-n",
            "3",
            "--python",
            python.to_str().unwrap(),
        ],
    );
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stdout.contains("3 runs, "), "{run:#?}");
    let rates = json(
        &project,
        &[
            "rates",
            "--days",
            "9999",
            "--baseline-days",
            "1",
            "--branch",
            "*",
        ],
    );
    assert_eq!(rates["summary"]["runs"], 5, "{rates:#}");
    assert_eq!(
        rates["summary"]["tests"], 2,
        "a report's names and the framework's are the same tests"
    );
}

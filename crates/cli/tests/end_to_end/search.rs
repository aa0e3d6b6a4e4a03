//! `unflake order` beyond its findings: cut off and taken up, misspelt, asked for by `run`, latent state.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkfifo};
use serde_json::Value;
use tempfile::TempDir;

use crate::hunt::nio_json;
use crate::project::{Project, Python, Run};

const SHOP: &str = "CART = []\nRATES = {}\n";
const POLLUTES: &str = "\
import shop


def test_fills():
    shop.CART.append('apple')


def test_sets_a_rate():
    shop.RATES['eur'] = 2
";
const VICTIM: &str = "\
import shop


def test_is_empty():
    assert shop.CART == []


def test_reads_rates():
    shop.RATES.get('eur')
";

fn order(project: &Project, python: &Path, cache: &Path, arguments: &[&str]) -> Run {
    let mut all = vec!["order", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    let mut command = project.unflake(&all);
    command.env("XDG_CACHE_HOME", cache);
    Run::of(command.output().unwrap())
}

fn shop() -> Project {
    Project::with(&[
        ("shop.py", SHOP),
        ("test_a.py", POLLUTES),
        ("test_b.py", VICTIM),
    ])
}

#[test]
fn a_search_that_was_cut_off_is_taken_up_and_says_so() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = shop();
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let ready = cache.path().join("ready");
    mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let hangs = "\
import os
import threading


def test_hangs():
    if os.path.exists(os.environ['UNFLAKE_TEST_READY']):
        with open(os.environ['UNFLAKE_TEST_READY'], 'w') as pipe:
            pipe.write(str(os.getpid()))
        threading.Event().wait()
";
    project.write("test_c.py", hangs);
    let all = ["order", "--python", python.to_str().unwrap()];
    let mut command = project.unflake(&all);
    command
        .env("XDG_CACHE_HOME", cache.path())
        .env("UNFLAKE_TEST_READY", &ready)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Opening the pipe waits for the test that hangs; those before it have run alone by then.
    let mut hanging = String::new();
    let mut pipe = fs::File::open(&ready).unwrap();
    pipe.read_to_string(&mut hanging).unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGKILL).unwrap();
    // Nobody is left who would end the test that hangs; its VM follows it.
    kill(Pid::from_raw(hanging.parse().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(Run::of(child.wait_with_output().unwrap()).code, None);
    fs::remove_file(&ready).unwrap();

    let mut command = project.unflake(&all);
    command
        .env("XDG_CACHE_HOME", cache.path())
        .env("UNFLAKE_TEST_READY", &ready);
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(
        run.stdout.contains("continues a search that was cut off"),
        "{run:#?}"
    );
    assert!(
        run.stdout.contains("VICTIM     test_b.py::test_is_empty"),
        "{run:#?}"
    );
    let left = fs::read_dir(cache.path().join("unflake/order")).unwrap();
    assert_eq!(left.count(), 0, "a search that is done leaves nothing");
}

#[test]
fn a_test_that_is_not_there_is_told_at_once() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let run = order(&shop(), &python, cache.path(), &["test_b.py::test_is_emty"]);
    assert_eq!(run.code, Some(2), "{run:#?}");
    for part in ["there is no test `test_b.py::test_is_emty`", "unflake list"] {
        assert!(run.stderr.contains(part), "{run:#?}");
    }
}

#[test]
fn a_budget_ends_a_search_and_what_is_open_is_told() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let run = order(&shop(), &python, cache.path(), &["--budget", "0.001s"]);
    assert!(run.stdout.contains("the time ran out"), "{run:#?}");
    assert!(!run.stdout.contains("VICTIM"), "{run:#?}");
    assert_eq!(
        run.code,
        Some(1),
        "nothing has run, so nothing is well: {run:#?}"
    );
}

/// Enough tests that a run of all of them is left by copies.
fn crowd(more: &str) -> String {
    let tests = (0..150).map(|number| format!("def test_{number}(): pass\n"));
    format!("{}{more}", tests.collect::<String>())
}

/// The first culprits of the one finding.
fn culprits(report: &Value) -> Vec<&str> {
    let tests = report["findings"][0]["order"]["culprits"][0]["tests"].as_array();
    let tests = tests.into_iter().flatten();
    tests.map(|test| test.as_str().unwrap()).collect()
}

#[test]
fn a_named_victim_is_found_whatever_it_does_itself() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    let polluter = crowd("import shop\ndef test_fills(): shop.CART.append('apple')\n");
    let thread = "import threading\ndef test_leaves_a_thread():\n    \
                  threading.Thread(target=threading.Event().wait, daemon=True).start()\n";
    let once = "    with open(PATH, 'x'): pass\n";
    let victims = format!(
        "import os, shop\nPATH = 'seen'\n\
         def test_plain(): assert shop.CART == []\n\
         def test_writes():\n    assert shop.CART == []\n{once}\
         def test_writes_elsewhere():\n    assert shop.CART == []\n    \
         open(os.environ['OUTSIDE'], 'a').close()\n"
    );
    let project = Project::with(&[
        ("shop.py", SHOP),
        ("test_a.py", &crowd("")),
        ("test_b.py", &polluter),
        ("test_c.py", &format!("{thread}{}", crowd(""))),
        ("test_d.py", &victims),
    ]);
    for test in ["test_plain", "test_writes", "test_writes_elsewhere"] {
        let id = format!("test_d.py::{test}");
        let mut command = project.unflake(&["order", "--format", "json", "--python"]);
        command.arg(&python).arg(&id);
        command.env("XDG_CACHE_HOME", cache.path());
        command.env("OUTSIDE", outside.path().join("seen"));
        let run = Run::of(command.output().unwrap());
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(culprits(&report), ["test_b.py::test_fills"], "{run:#?}");
        assert!(
            run.stderr.contains(&format!("FOUND {id} fails after")),
            "{run:#?}"
        );
    }
}

#[test]
fn what_copies_do_outside_of_their_files_does_not_mislead() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    // It passes once alone and fails ever after, because of what it wrote where nobody looks: chance, as
    // far as one can tell, and never the doing of another test.
    let victim = "import os\ndef test_once():\n    with open(os.environ['OUTSIDE'], 'x'): pass\n";
    let project = Project::with(&[("test_a.py", &crowd("")), ("test_b.py", victim)]);
    let mut command = project.unflake(&["order", "--format", "json", "--python"]);
    command.arg(&python).arg("test_b.py::test_once");
    command.env("XDG_CACHE_HOME", cache.path());
    command.env("OUTSIDE", outside.path().join("seen"));
    let run = Run::of(command.output().unwrap());
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(culprits(&report), [""; 0], "{run:#?}");
    assert!(!run.stderr.contains("FOUND"), "{run:#?}");
}

#[test]
fn run_explains_a_failure_that_passes_in_a_fresh_state() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let (report, run) = shop().run_json(&python, &["--explain", "--not-known", "pass"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let finding = &report["findings"][0];
    assert_eq!(finding["verdict"], "flaky");
    let culprits = &finding["order"]["culprits"][0]["tests"];
    assert_eq!(*culprits, serde_json::json!(["test_a.py::test_fills"]));
    let cause = &finding["cause"];
    assert_eq!(cause["shown"][0]["path"], "shop.CART", "{cause:#}");
    assert_eq!(
        (&cause["shown"][0]["file"], &cause["shown"][0]["line"]),
        (&"test_a.py".into(), &5.into())
    );
    let diff = cause["fix"]["diff"].as_str().unwrap();
    assert!(diff.contains("+    shop.CART[:] = before"), "{diff}");
}

#[test]
fn nio_explains_a_victim_that_it_comes_across() {
    let project = shop();
    let Some((report, _)) = nio_json(&project, project.path(), &["--explain"]) else {
        return;
    };
    let mut findings = report["findings"].as_array().unwrap().iter();
    let finding = findings.find(|one| one["id"] == "test_b.py::test_is_empty");
    let finding = finding.unwrap();
    assert_eq!(finding["verdict"], "victim", "{finding:#}");
    let culprits = &finding["order"]["culprits"][0]["tests"];
    assert_eq!(*culprits, serde_json::json!(["test_a.py::test_fills"]));
    let cause = &finding["cause"];
    assert_eq!(cause["shown"][0]["path"], "shop.CART", "{cause:#}");
}

#[test]
fn latent_state_is_listed_if_others_reach_it() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let run = order(
        &shop(),
        &python,
        cache.path(),
        &["--latent", "--format", "json"],
    );
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let latent = report["latent"].as_array().unwrap();
    let paths: Vec<&str> = latent
        .iter()
        .filter_map(|one| one["path"].as_str())
        .collect();
    // `shop.CART` is no latent one: a test fails for it.
    assert_eq!(paths, ["shop.RATES['eur']"], "{report:#}");
    assert_eq!(latent[0]["readers"], serde_json::json!(["test_b.py"]));
}

#[test]
fn every_report_names_the_culprits_and_the_state() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let cache = TempDir::with_prefix("unflake-test-").unwrap();
    let xml = cache.path().join("report.xml");
    let wanted = ["--format", "markdown", "--junit", xml.to_str().unwrap()];
    let run = order(&shop(), &python, cache.path(), &wanted);
    let junit = fs::read_to_string(xml).unwrap();
    for report in [&run.stdout, &junit] {
        for part in ["fails after: test_a.py::test_fills", "item shop.CART"] {
            assert!(report.contains(part), "{part}: {report}");
        }
    }
    assert!(junit.contains("name=\"unflake.order\""), "{junit}");
}

//! Ctrl-C: nothing is left behind, and what is known is told.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkfifo};

use crate::project::{Project, Python, Run};

const HANGS: &str = r#"
import os
import signal
import subprocess
import threading


def test_fails():
    assert False


def test_hangs():
    children = [
        subprocess.Popen(["sleep", "1000"]),
        # This one leaves the process group.
        subprocess.Popen(["sleep", "1000"], start_new_session=True),
    ]
    with open("ready", "w") as pipe:
        pipe.write(" ".join(str(pid) for pid in [os.getpid(), *(c.pid for c in children)]))
    threading.Event().wait()
"#;

/// Runs a project until its test hangs, interrupts unflake, and returns the processes that ran.
fn interrupt(arguments: &[&str], signal: Signal) -> Option<(Run, Vec<Pid>)> {
    let python = Python::Plain.find()?;
    let project = Project::with(&[("test_hang.py", HANGS)]);
    let ready = project.path().join("ready");
    mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut all = vec!["run", "--python", python.to_str().unwrap()];
    all.extend(arguments);
    let mut command = project.unflake(&all);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Opening the pipe waits for the test, and reading it for the test's last word.
    let mut words = String::new();
    fs::File::open(&ready)
        .unwrap()
        .read_to_string(&mut words)
        .unwrap();
    let pids = words
        .split(' ')
        .map(|pid| Pid::from_raw(pid.parse().unwrap()))
        .collect();
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
    Some((Run::of(child.wait_with_output().unwrap()), pids))
}

fn assert_gone(pids: &[Pid]) {
    for pid in pids {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie waits only for whoever has adopted it.
        let is_dead = state.is_empty() || state.contains(") Z ") || state.contains(") X ");
        assert!(is_dead, "process {pid} is left behind: {state}");
    }
}

#[test]
fn ctrl_c_ends_every_process_and_tells_what_is_known() {
    let Some((run, pids)) = interrupt(&[], Signal::SIGINT) else {
        return;
    };
    assert_eq!(run.code, Some(130), "{run:#?}");
    assert!(
        run.stdout.contains("UNEXAMINED test_hang.py::test_fails"),
        "{run:#?}"
    );
    assert!(run.stdout.contains("(interrupted)"), "{run:#?}");
    assert_gone(&pids);
}

#[test]
fn a_termination_is_an_interruption_too_and_the_report_is_whole() {
    let Some((run, pids)) = interrupt(&["--format", "json"], Signal::SIGTERM) else {
        return;
    };
    assert_eq!(run.code, Some(130), "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["ended"], "interrupted");
    assert_eq!(
        report["summary"]["not_run"], 1,
        "the test that hung has no outcome"
    );
    assert_gone(&pids);
}

/// Passes and fails by turns until it hangs: the hash seed is the number of the run.
const TURNS: &str = r#"
import os
import threading


def test_turns():
    seed = int(os.environ["PYTHONHASHSEED"])
    if seed == 5:
        with open(os.environ["READY"], "w") as pipe:
            pipe.write(str(os.getpid()))
        threading.Event().wait()
    assert seed % 2
"#;

#[test]
fn why_tells_what_it_knows_when_it_is_interrupted() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_turns.py", TURNS)]);
    let pipes = tempfile::tempdir().unwrap();
    let ready = pipes.path().join("ready");
    mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let python = python.to_str().unwrap();
    let test = "test_turns.py::test_turns";
    let mut command = project.unflake(&["why", "--no-record", "--python", python, test]);
    let command = command.env_remove("PYTHONHASHSEED").env("READY", &ready);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = fs::read_to_string(&ready).unwrap();
    let pid = Pid::from_raw(pid.parse().unwrap());
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{run:#?}");
    assert!(
        run.stdout.contains("failed in 2 of 4 traced runs"),
        "{run:#?}"
    );
    assert!(run.stdout.contains("It was interrupted"), "{run:#?}");
    assert_gone(&[pid]);
}

/// A test that is NIO, one that waits, and one that never runs.
const WAITS: &str = r#"
import os
import threading

RUNS = []


def test_once():
    RUNS.append(1)
    assert RUNS == [1]


def test_waits():
    with open(os.environ["READY"], "w") as pipe:
        pipe.write(str(os.getpid()))
    threading.Event().wait()


def test_never():
    pass
"#;

#[test]
fn nio_names_what_had_failed_when_it_is_interrupted() {
    let Some(python) = Python::Plain.find() else {
        return;
    };
    let project = Project::with(&[("test_waits.py", WAITS)]);
    let pipes = tempfile::tempdir().unwrap();
    let ready = pipes.path().join("ready");
    mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let python = python.to_str().unwrap();
    let all = ["nio", "--no-record", "--python", python, "--format", "json"];
    let mut command = project.unflake(&all);
    let command = command.env("READY", &ready);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = fs::read_to_string(&ready).unwrap();
    let pid = Pid::from_raw(pid.parse().unwrap());
    // What a test has written to the pipe may be known before unflake has read how the one before it ended.
    let said = BufReader::new(child.stderr.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("FAILED test_waits.py::test_once")));
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["ended"], "interrupted");
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{run:#?}");
    assert_eq!(findings[0]["id"], "test_waits.py::test_once");
    assert_eq!(findings[0]["verdict"], "unexamined");
    let attempts = findings[0]["attempts"].as_array().unwrap();
    let outcomes = attempts.iter().map(|one| one["outcome"].as_str().unwrap());
    assert!(outcomes.eq(["passed", "failed"]), "{run:#?}");
    assert_gone(&[pid]);
}

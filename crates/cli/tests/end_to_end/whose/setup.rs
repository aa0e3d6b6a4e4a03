//! The user's command that makes the base ready: it fails, takes too long, or is interrupted.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::history::{History, Way};
use super::{BROKEN, BUG, SHOP};

/// A table that git ignores, which the setup of the base would make.
const TABLE: &str = r#"
=== .gitignore
__pycache__/
.pytest_cache/
table.txt
=== shop.py
def is_known(table):
    return table == "1"
=== test_a.py
import os


def test_once():
    path = os.environ["OUTSIDE"] + "/once"
    ran = os.path.exists(path)
    open(path, "a").close()
    assert ran
=== test_b.py
import pathlib

import shop

TABLE = pathlib.Path(__file__).with_name("table.txt")


def test_table():
    assert shop.is_known(TABLE.read_text() if TABLE.exists() else ""), "bad table"
"#;

#[test]
fn a_setup_that_failed_is_remembered_for_all_suspects() {
    let setup = "=== unflake.toml\n[base]\nsetup = \"exit 3\"\n";
    let Some(history) = History::at(&format!("{TABLE}{setup}")) else {
        return;
    };
    history.write("table.txt", "1");
    let bug = ("shop.py", "table == \"1\"", "table == \"2\"");
    history.change(Way::Branch, &[bug]);
    let said = history.run(&["--forgive", "pre-existing"]);
    for test in ["test_a.py::test_once", "test_b.py::test_table"] {
        said.ends(1).is(test, "not-known", &["base-cannot-run"]);
        let why = said.finding(test)["whose"]["sentence"].as_str();
        assert!(why.unwrap().contains("its setup `exit 3` failed"), "{said}");
    }
}

#[test]
fn a_setup_that_takes_longer_than_the_budget_is_ended_and_told() {
    let setup = "=== unflake.toml\n[base]\nsetup = \"echo $$ > $OUTSIDE/pid; sleep 1000\"\n";
    let Some(history) = History::at(&format!("{SHOP}{setup}")) else {
        return;
    };
    history.change(Way::Branch, &[BUG]);
    let said = history.run(&["--blame-budget", "2"]);
    said.ends(1).is(BROKEN, "not-known", &["budget"]);
    let whose = &said.finding(BROKEN)["whose"];
    let why = whose["sentence"].as_str().unwrap();
    assert!(
        why.contains("the base could not be made ready in the time: its setup"),
        "{said}"
    );
    let help = whose["settle"].as_str().unwrap();
    assert!(
        help.contains("--blame-budget") && help.contains("[base] budget"),
        "{said}"
    );
    assert_gone(&history.outside("pid"));
}

#[test]
fn an_interruption_ends_the_setup_of_the_base() {
    let setup = "=== unflake.toml\n[base]\nsetup = \"echo $$ > $OUTSIDE/ready; sleep 1000\"\n";
    let Some(history) = History::at(&format!("{SHOP}{setup}")) else {
        return;
    };
    history.change(Way::Branch, &[BUG]);
    let ready = Path::new(&history.place("outside")).join("ready");
    mkfifo(&ready, Mode::S_IRWXU).unwrap();
    let mut unflake = history.command(Path::new(env!("CARGO_BIN_EXE_unflake")), &history.tree());
    unflake.args(["run", "--python"]).arg(history.python());
    let child = unflake
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = fs::read_to_string(&ready).unwrap();
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_gone(&[pid]);
    assert_eq!(fs::read_dir(history.place("tmp")).unwrap().count(), 0);
}

/// No process of these is left, unless as a zombie that waits for who has adopted it.
fn assert_gone(pids: &[String]) {
    for pid in pids {
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let is_dead = state.is_empty() || state.contains(") Z ") || state.contains(") X ");
        assert!(is_dead, "process {pid} is left behind: {state}");
    }
}

//! Looks that are evidence: independent draws, kinds that chance does not explain, and a row for every run.

use std::collections::BTreeSet;

use super::history::{History, Way};

const DRAWS: &str = r#"
=== test_draw.py
import os
import random

import numpy


def test_draw():
    with open(os.environ["OUTSIDE"] + "/draws", "a") as file:
        print(random.random(), numpy.random.random(), file=file)
    assert False
"#;

#[test]
fn generators_that_nobody_seeded_are_drawn_from_anew_in_each_fork() {
    let Some(history) = History::outside_git(DRAWS) else {
        return;
    };
    history.run(&["--fresh", "4", "--fresh-by", "fork"]);
    let draws = history.outside("draws");
    assert!(draws.len() >= 5, "{draws:?}");
    for column in [0, 1] {
        let numbers = draws.iter().map(|line| line.split(' ').nth(column));
        let different: BTreeSet<_> = numbers.collect();
        assert_eq!(different.len(), draws.len(), "{draws:?}");
    }
}

#[test]
fn generators_that_the_project_seeded_are_kept() {
    let seeds =
        "=== conftest.py\nimport random\n\nimport numpy\n\nrandom.seed(7)\nnumpy.random.seed(7)\n";
    for how in ["fork", "exec"] {
        let Some(history) = History::outside_git(&format!("{DRAWS}{seeds}")) else {
            return;
        };
        history.run(&["--fresh", "4", "--fresh-by", how]);
        let draws = history.outside("draws");
        let first = draws.iter().filter(|line| **line == draws[0]).count();
        // The suite's own and all fresh ones; the others come later in the same interpreter.
        assert!(first >= 5, "{draws:?}");
    }
}

/// A coin whose sequence begins at a place of its own, after other tests that share a fixture with it.
fn coin(start: u32) -> String {
    format!(
        r#"
=== test_coin.py
import coin
import pytest


@pytest.fixture(scope="module")
def table():
    return []


def test_before(table):
    assert table == []


def test_coin(table):
    assert coin.toss(start={start})


def test_after(table):
    assert table == []
"#
    )
}

const COIN: &str = "test_coin.py::test_coin";

#[test]
fn a_plain_coin_is_flaky_and_of_no_kind_that_it_is_not() {
    // Places at which the sequence fails first, with different continuations.
    for start in [0, 3, 6, 10, 12, 18] {
        let Some(history) = History::outside_git(&coin(start)) else {
            return;
        };
        assert_eq!(history.fail_plainly(&history.tree(), &[]), [COIN]);
        let said = history.run(&[]);
        said.fails_as(COIN, "flaky");
        let kind = said.finding(COIN)["kind"].as_str().unwrap_or_default();
        for wrong in ["bursty", "state-dependent", "disturbed", "untouched"] {
            assert_ne!(kind, wrong, "start {start}: {said}");
        }
        said.ends(1).is(COIN, "not-known", &["no-repository"]);
    }
}

#[test]
fn every_run_is_a_row() {
    for start in [0, 3, 6, 10, 12, 18] {
        let Some(history) = History::outside_git(&coin(start)) else {
            return;
        };
        let said = history.run(&[]);
        let rows = said.finding(COIN)["attempts"].as_array().unwrap().len();
        let runs = history.outside("coin").concat().len();
        assert_eq!(rows, runs, "start {start}: {said}");
    }
}

/// Ends as a script says: passes, fails, or takes the interpreter with it. After the script it passes.
fn scripted(script: &str, before: &str) -> String {
    format!(
        r#"
=== test_script.py
import os

{before}

def test_script():
    with open(os.environ["OUTSIDE"] + "/script", "ab") as file:
        file.write(b".")
        file.flush()
        number = file.tell()
    end = "{script}"[number - 1 : number] or "P"
    if end == "C":
        os._exit(3)
    assert end == "P"
"#
    )
}

const SCRIPT: &str = "test_script.py::test_script";

#[test]
fn one_pass_after_crashes_makes_nothing_brittle() {
    for script in ["FPCC", "FCC", "FFCCP", "FPFF", "FPFPF"] {
        let Some(history) = History::outside_git(&scripted(script, "")) else {
            return;
        };
        let said = history.run(&[]);
        let verdict = &said.finding(SCRIPT)["verdict"];
        assert_ne!(verdict, "brittle", "{script}: {said}");
        assert_ne!(verdict, "broken", "{script}: {said}");
        said.ends(1).is(SCRIPT, "not-known", &["no-repository"]);
    }
}

#[test]
fn one_fresh_failure_and_one_fresh_pass_say_nothing_of_the_state() {
    for script in ["FFFFP", "FFFP", "FFFFPF"] {
        let before = "\ndef test_before():\n    pass\n";
        let Some(history) = History::outside_git(&scripted(script, before)) else {
            return;
        };
        let said = history.run(&["--fresh", "4"]);
        let finding = said.finding(SCRIPT);
        assert_ne!(finding["kind"], "state-dependent", "{script}: {said}");
        said.ends(1);
    }
}

#[test]
fn an_outside_condition_and_a_crash_of_the_suites_interpreter_are_not_state() {
    let crash = r#"
def test_crash():
    name = os.environ["OUTSIDE"] + "/crashed"
    if not os.path.exists(name):
        open(name, "w").close()
        os._exit(3)

"#;
    let pass = "\ndef test_before():\n    pass\n";
    // The crash comes before the failure, or after it.
    for files in [
        scripted("FFF", crash),
        scripted("FF", pass) + crash,
        scripted("FFF", pass) + crash,
    ] {
        let Some(history) = History::outside_git(&files) else {
            return;
        };
        let said = history.run(&[]);
        let finding = said.finding(SCRIPT);
        assert_ne!(finding["kind"], "state-dependent", "{said}");
    }
}

#[test]
fn a_real_victim_is_still_told_from_a_coin() {
    let base = "
=== test_state.py
LEVELS = []


def test_first():
    LEVELS.append(1)


def test_second():
    assert LEVELS == []
=== docs/notes.md
Tea.
";
    let Some(history) = History::at(base) else {
        return;
    };
    history.change(Way::Branch, &[("docs/notes.md", "Tea", "Coffee")]);
    let said = history.run(&[]);
    let test = "test_state.py::test_second";
    said.ends(0).fails_as(test, "flaky");
    assert_eq!(said.finding(test)["kind"], "state-dependent", "{said}");
}

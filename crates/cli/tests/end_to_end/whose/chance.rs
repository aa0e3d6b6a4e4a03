//! Changes that bring chance into the product or into the tests.

use super::history::{Edit, History, Way};

/// A change with which a test fails now and then, and before which it never did. At home and in a CI
/// it is the change's, although it passes when it is run again.
fn chance(test: &str, base: &str, edits: &[Edit], because: &[&str]) {
    let Some(home) = History::at(base) else {
        return;
    };
    home.change(Way::Uncommitted, edits);
    home.premise(&[test]);
    let said = home.run(&[]);
    said.ends(1).is(test, "yours", because);
    said.fails_as(test, "flaky");

    let ci = History::at(base).unwrap().in_ci();
    ci.change(Way::Branch, edits);
    let said = ci.run(&[]);
    said.ends(1).is(test, "yours", because);
    said.fails_as(test, "flaky");
}

const PICK: &str = r#"
=== pick.py
import coin


def pick(items):
    return items[0]
=== test_pick.py
import pick


def test_pick():
    assert pick.pick(["tea", "mug"]) == "tea"
"#;

#[test]
fn a_choice_by_chance() {
    let edit = ("pick.py", "items[0]", "items[0 if coin.toss() else 1]");
    chance("test_pick.py::test_pick", PICK, &[edit], &["fails-more"]);
}

#[test]
fn a_choice_that_is_wrong_one_time_in_three() {
    let edit = (
        "pick.py",
        "items[0]",
        "items[0 if coin.toss(sides=3) else 1]",
    );
    chance("test_pick.py::test_pick", PICK, &[edit], &["fails-more"]);
}

#[test]
fn a_wait_that_is_too_short() {
    let base = r#"
=== work.py
import coin


def work(limit):
    """A worker that needs one tick or four."""
    ticks = 1 if coin.toss() else 4
    return ticks <= limit


def run():
    return work(5)
=== test_work.py
import work


def test_work():
    assert work.run()
"#;
    let edit = ("work.py", "work(5)", "work(2)");
    chance("test_work.py::test_work", base, &[edit], &["fails-more"]);
}

#[test]
fn a_thread_that_is_no_longer_waited_for() {
    let base = "
=== thread.py
import threading

import coin


def run():
    go, done = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), done.append(1)))
    thread.start()
    if coin.toss():
        go.set()
        thread.join()
    go.set()
    thread.join()
    return len(done)
=== test_thread.py
import thread


def test_run():
    assert thread.run() == 1
";
    let edit = (
        "thread.py",
        "    go.set()\n    thread.join()\n    return len(done)",
        "    seen = len(done)\n    go.set()\n    thread.join()\n    return seen",
    );
    chance("test_thread.py::test_run", base, &[edit], &["fails-more"]);
}

#[test]
fn a_retry_that_is_gone() {
    let base = r#"
=== fetch.py
import coin


def fetch():
    for _ in range(12):
        if coin.toss():
            return "page"
    raise OSError("no answer")
=== test_fetch.py
import fetch


def test_fetch():
    assert fetch.fetch() == "page"
"#;
    let edit = ("fetch.py", "range(12)", "range(1)");
    chance("test_fetch.py::test_fetch", base, &[edit], &["fails-more"]);
}

#[test]
fn an_error_that_is_no_longer_caught() {
    let base = r#"
=== parse.py
import coin


def parse(text):
    try:
        if not coin.toss():
            raise ValueError(text)
        return int(text)
    except ValueError:
        return 3
=== test_parse.py
import parse


def test_parse():
    assert parse.parse("3") == 3
"#;
    let edit = ("parse.py", "except ValueError", "except KeyError");
    chance("test_parse.py::test_parse", base, &[edit], &["fails-more"]);
}

#[test]
fn a_tolerance_that_is_too_narrow() {
    let base = "
=== measure.py
import coin


def measure():
    return 10 if coin.toss() else 12
=== test_measure.py
import measure


def test_measure():
    assert abs(measure.measure() - 10) <= 3
";
    let edit = ("test_measure.py", "<= 3", "<= 1");
    chance(
        "test_measure.py::test_measure",
        base,
        &[edit],
        &["fails-more"],
    );
}

#[test]
fn a_new_flaky_test() {
    let new = "\n\ndef test_new():\n    import coin\n\n    assert coin.toss()\n";
    let edit = ("test_pick.py", "", new);
    chance("test_pick.py::test_new", PICK, &[edit], &["new-test"]);
}

#[test]
fn a_new_file_with_a_flaky_test() {
    let new = "import coin\n\n\ndef test_new():\n    assert coin.toss(sides=3)\n";
    let edit = ("test_new.py", "", new);
    chance("test_new.py::test_new", PICK, &[edit], &["new-test"]);
}

#[test]
fn a_new_parameter_that_is_flaky() {
    let base = r#"
=== test_size.py
import coin
import pytest


@pytest.mark.parametrize("size", [1, 2])
def test_size(size):
    assert size < 3 or coin.toss()
"#;
    let edit = ("test_size.py", "[1, 2]", "[1, 2, 3]");
    chance("test_size.py::test_size[3]", base, &[edit], &["new-test"]);
}

#[test]
fn a_rare_flake_that_now_fails_always_is_not_acquitted() {
    let base = r#"
=== rare.py
import coin


def rare():
    return coin.toss("rare", sides=31, start=1)
=== test_rare.py
import rare


def test_rare():
    assert rare.rare()
"#;
    let edit = ("rare.py", "    return coin", "    return False and coin");
    super::bug("test_rare.py::test_rare", base, &[edit], &["fails-more"]);
}

//! So many failures that none is examined: all of them count, also where tests share a fixture.

use super::history::{Edit, History, Way};
use super::said::Said;

/// Thirty tests of one module, with one fixture for all of them.
const MANY: &str = r#"
=== stock.py
COUNT = 1


def name():
    return "stock"
=== test_stock.py
import os

import pytest
import stock


@pytest.fixture(scope="module")
def count():
    stock.name()
    return stock.COUNT


@pytest.mark.parametrize("number", range(30))
def test_count(count, number):
    with open(os.environ["OUTSIDE"] + "/runs", "a") as file:
        print(number, file=file)
    assert count == 1
"#;

/// All thirty fail, and none is examined.
fn all_fail(history: &History, edit: Edit, arguments: &[&str]) -> Said {
    history.change(Way::Branch, &[edit]);
    assert_eq!(history.fail_plainly(&history.tree(), &[]).len(), 30);
    let said = history.run(arguments);
    said.ends(1);
    assert_eq!(said.tests().len(), 30, "{said}");
    assert_eq!(said.report["too_many_failures"], true, "{said}");
    assert_eq!(said.report["summary"]["unexamined"], 30, "{said}");
    for test in said.tests() {
        said.fails_as(test, "unexamined");
    }
    said
}

#[test]
fn thirty_failures_of_thirty_with_one_fixture_are_too_many() {
    let Some(history) = History::at(MANY) else {
        return;
    };
    assert_eq!(history.fail_at_base(), [""; 0]);
    let said = all_fail(&history, ("stock.py", "COUNT = 1", "COUNT = 2"), &[]);
    for test in said.tests() {
        said.is_not_acquitted(test);
    }
    // The suite, at most one rerun each, and few questions at the base.
    let runs = history.outside("runs").len();
    assert!(runs <= 120, "{runs} runs");
}

#[test]
fn thirty_failures_that_main_has_too_are_asked_for_at_the_base() {
    let Some(history) = History::at(&MANY.replace("COUNT = 1", "COUNT = 2")) else {
        return;
    };
    assert_eq!(history.fail_at_base().len(), 30);
    let edit = ("stock.py", "\"stock\"", "\"store\"");
    let said = all_fail(&history, edit, &[]);
    let answers = said.tests();
    let answers = answers
        .iter()
        .map(|test| &said.finding(test)["whose"]["answer"]);
    assert_eq!(answers.clone().filter(|one| **one == "yours").count(), 0);
    let innocent = answers.filter(|one| **one == "not-yours").count();
    assert!(innocent >= 1, "{said}");
    let runs = history.outside("runs").len();
    assert!(runs <= 120, "{runs} runs");
}

#[test]
fn what_is_unexamined_is_forgiven_by_no_flag() {
    let Some(history) = History::at(MANY) else {
        return;
    };
    let edit = ("stock.py", "COUNT = 1", "COUNT = 2");
    let flags = ["--not-known", "pass", "--forgive", "pre-existing"];
    all_fail(&history, edit, &flags);
}

#[test]
fn five_failures_with_one_fixture_are_all_counted_and_examined() {
    let Some(history) = History::at(&MANY.replace("range(30)", "range(5)")) else {
        return;
    };
    history.change(Way::Branch, &[("stock.py", "COUNT = 1", "COUNT = 2")]);
    let said = history.run(&[]);
    said.ends(1);
    assert_eq!(said.report["summary"]["broken"], 5, "{said}");
    for test in said.tests() {
        said.is(test, "yours", &["fails-more"]);
    }
}

/// Twenty tests that fail once each, and pass whenever they are run again.
const BLIP: &str = r#"
=== net.py
import os

PORT = 1


def is_up(number):
    mark = os.environ["OUTSIDE"] + f"/up{number}"
    was_asked = os.path.exists(mark)
    open(mark, "w").close()
    return was_asked
=== test_net.py
import os

import net
import pytest


@pytest.mark.parametrize("number", range(20))
def test_net(number):
    with open(os.environ["OUTSIDE"] + "/runs", "a") as file:
        print(number, file=file)
    assert net.is_up(number)
"#;

#[test]
fn failures_that_pass_at_once_are_too_many_as_well() {
    let Some(history) = History::at(BLIP) else {
        return;
    };
    history.change(Way::Branch, &[("net.py", "PORT = 1", "PORT = 2")]);
    let said = history.run(&[]);
    said.ends(1);
    assert_eq!(said.tests().len(), 20, "{said}");
    for test in said.tests() {
        said.fails_as(test, "unexamined");
        said.is_not_acquitted(test);
    }
    // The suite and one rerun each. One stands for all that failed alike, and is asked at the base.
    let runs = history.outside("runs");
    let count = |number: &str| runs.iter().filter(|run| *run == number).count();
    let often = (0..20).filter(|number| count(&number.to_string()) > 2);
    assert_eq!(often.count(), 1, "{runs:?}");
}

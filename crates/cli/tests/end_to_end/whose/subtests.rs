//! Sub-tests: each is a test of its own for the question whose failure it is.

use super::history::{Edit, History, Way};

/// Two sub-tests, the second of which has an old coin.
const SHELF: &str = r#"
=== shelf.py
import coin


def has(number):
    return number == 1 or coin.toss()


def name():
    return "shelf"
=== test_shelf.py
import unittest

import shelf


def test_shelf(subtests):
    assert shelf.name()
    for number in (1, 2):
        with subtests.test(number=number):
            assert shelf.has(number)


class ShelfTest(unittest.TestCase):
    def test_all(self):
        self.assertTrue(shelf.name())
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertTrue(shelf.has(number))
"#;

/// What is said of both tests after a change, one at a time.
fn each(edit: Edit, check: impl Fn(&History, &str)) {
    for (test, other) in [
        ("test_shelf.py::test_shelf", "ShelfTest"),
        ("test_shelf.py::ShelfTest::test_all", "test_shelf"),
    ] {
        let Some(history) = History::at(SHELF) else {
            return;
        };
        history.write(
            "pytest.ini",
            &format!("[pytest]\npythonpath = .\naddopts = --deselect test_shelf.py::{other}\n"),
        );
        history.change(Way::Branch, &[edit]);
        check(&history, test);
    }
}

#[test]
fn an_old_coin_in_one_subtest_is_not_yours() {
    let edit = ("shelf.py", "\"shelf\"", "\"shelves\"");
    each(edit, |history, test| {
        history.run(&[]).ends(0).is(test, "not-yours", &["at-base"]);
    });
}

#[test]
fn an_old_coin_in_one_subtest_does_not_excuse_another_subtest() {
    let edit = ("shelf.py", "number == 1 or", "number != 1 and");
    each(edit, |history, test| {
        history.run(&[]).ends(1).is_not_acquitted(test);
    });
}

//! Parameters whose places move from interpreter to interpreter: an id must mean the same test.

use std::collections::BTreeSet;

use super::history::{History, Way};

/// Shapes in a set, which have no names: their ids are places in an order that the hash seed draws.
const SHAPES: &str = r#"
=== shapes.py
SIDES = {"line": 1, "triangle": 3, "square": 4, "star": 10, "pentagon": 5}


class Shape:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name

    def sides(self):
        return SIDES[self.name]


SHAPES = {Shape(name) for name in sorted(SIDES)}
=== test_shapes.py
import pytest
import shapes


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_sides(shape):
    assert shape.sides() > 0
=== docs/notes.md
Shapes.
"#;

#[test]
fn a_bug_of_one_parameter_of_a_set_is_a_bug() {
    for way in [Way::Uncommitted, Way::Branch] {
        let Some(history) = History::at(SHAPES) else {
            return;
        };
        history.change(way, &[("shapes.py", "\"star\": 10", "\"star\": 0")]);
        let failed = history.fail_plainly(&history.tree(), &[]);
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(history.fail_at_base(), [""; 0]);
        if matches!(way, Way::Branch) {
            history.set("CI", "true");
        }
        let said = history.run(&[]);
        let [test] = said.tests()[..] else {
            panic!("{said}");
        };
        said.ends(1).is(test, "yours", &["fails-more"]);
        said.fails_as(test, "broken");
    }
}

#[test]
fn a_bug_of_a_named_parameter_of_a_set_is_a_bug() {
    let base = r#"
=== test_names.py
import pytest

KNOWN = ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", {"a", "b", "c", "d"})
def test_name(name):
    assert name in KNOWN
"#;
    let edit = ("test_names.py", "\"c\", \"d\"]", "\"d\"]");
    super::bug(
        "test_names.py::test_name[c]",
        base,
        &[edit],
        &["fails-more"],
    );
}

#[test]
fn an_old_coin_among_the_parameters_of_a_set_is_not_yours() {
    let base = SHAPES.replace(
        "    assert shape.sides() > 0\n",
        "    import coin\n\n    assert shape.name != \"star\" or coin.toss()\n",
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(Way::Branch, &[("docs/notes.md", "Shapes", "Forms")]);
    let said = history.run(&[]);
    let [test] = said.tests()[..] else {
        panic!("{said}");
    };
    said.ends(0)
        .is(test, "not-yours", &["untouched", "at-base"]);
    said.fails_as(test, "flaky");
}

#[test]
fn a_rerun_of_another_parameter_under_the_same_id_is_no_pass() {
    // The places move with each collection, whatever the hash seed: one of three is wrong.
    let base = r#"
=== test_places.py
import os

import pytest


class Place:
    def __init__(self, number):
        self.number = number


def places():
    with open(os.environ["OUTSIDE"] + "/collections", "ab") as file:
        file.write(b".")
        file.flush()
        first = file.tell()
    return [Place((first + number) % 3) for number in range(3)]


@pytest.mark.parametrize("place", places())
def test_place(place):
    assert place.number != 7
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    history.change(Way::Branch, &[("test_places.py", "!= 7", "!= 1")]);
    let failed = history.fail_plainly(&history.tree(), &[]);
    assert_eq!(failed.len(), 1, "{failed:?}");
    let said = history.run(&[]);
    let [test] = said.tests()[..] else {
        panic!("{said}");
    };
    said.ends(1).is_not_acquitted(test);
}

/// Writes down what it sees of the hash seed, and fails always.
const SEED: &str = r#"
=== test_seed.py
import os
import subprocess
import sys


def test_seed():
    script = "import os; print(os.environ.get('PYTHONHASHSEED'))"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    with open(os.environ["OUTSIDE"] + "/seeds", "a") as file:
        seed = os.environ.get("PYTHONHASHSEED")
        print(seed, child.stdout.strip(), hash("a text"), file=file)
    assert False
"#;

#[test]
fn all_interpreters_have_one_hash_seed_and_tests_do_not_see_it() {
    let Some(history) = History::outside_git(SEED) else {
        return;
    };
    history.run(&["--fresh", "4", "--fresh-by", "exec"]);
    let seeds = history.outside("seeds");
    // Three runs of the suite's interpreter and four new ones; one look may draw another seed on purpose.
    let same = seeds.iter().filter(|line| **line == seeds[0]).count();
    assert!(same >= 6, "{seeds:?}");
    let lines: BTreeSet<String> = seeds.into_iter().collect();
    for line in &lines {
        assert!(line.starts_with("None None "), "{lines:?}");
    }
}

#[test]
fn the_users_own_hash_seed_is_kept_and_seen() {
    let Some(history) = History::outside_git(SEED) else {
        return;
    };
    history.set("PYTHONHASHSEED", "5");
    history.run(&["--fresh-by", "exec"]);
    let lines: BTreeSet<String> = history.outside("seeds").into_iter().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("5 5 ")),
        "{lines:?}"
    );
}

/// A test with a parameter for each file, by its whole path, and a coin for one of them.
const PATHS: &str = r#"
=== data/one.txt
1
=== data/two.txt
2
=== prices.py
def least():
    return 1
=== test_files.py
import glob
import os

import coin
import prices
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.mark.parametrize("path", sorted(glob.glob(HERE + "/data/*.txt")))
def test_file(path):
    number = int(open(path).read())
    assert number >= prices.least()
    assert number == 1 or coin.toss()
"#;

#[test]
fn an_old_coin_whose_parameter_is_a_path_of_the_checkout_is_not_yours() {
    let Some(history) = History::at(PATHS) else {
        return;
    };
    history.change(Way::Branch, &[("prices.py", "return 1", "return 0 + 1")]);
    let test = format!("test_files.py::test_file[{}/data/two.txt]", tree(&history));
    let said = history.run(&[]);
    said.ends(0).is(&test, "not-yours", &["at-base"]);
}

#[test]
fn a_bug_in_a_parameter_that_is_a_path_of_the_checkout_is_yours() {
    let Some(history) = History::at(PATHS) else {
        return;
    };
    history.change(Way::Branch, &[("prices.py", "return 1", "return 2")]);
    let test = format!("test_files.py::test_file[{}/data/one.txt]", tree(&history));
    let said = history.run(&[]);
    said.ends(1).is(&test, "yours", &["fails-more"]);
}

/// The work tree as Python tells it.
fn tree(history: &History) -> String {
    let tree = history.tree().canonicalize().unwrap();
    tree.to_str().unwrap().to_owned()
}

#[test]
fn an_id_that_each_collection_draws_anew_is_no_new_test() {
    let base = r#"
=== prices.py
def price():
    return 1
=== test_ids.py
import os

import coin
import prices
import pytest


def drawn():
    with open(os.environ["OUTSIDE"] + "/collections", "ab") as file:
        file.write(b".")
        file.flush()
        return f"run-{file.tell()}"


@pytest.mark.parametrize("run", [drawn()])
def test_price(run):
    assert prices.price() == 1 and coin.toss()
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    let edit = ("prices.py", "return 1", "return 0 + 1");
    history.change(Way::Branch, &[edit]);
    let mut said = history.run(&[]);
    if said.tests().is_empty() {
        said = history.run(&[]);
    }
    let [test] = said.tests()[..] else {
        panic!("{said}");
    };
    said.ends(1).is(test, "not-known", &["base-cannot-run"]);
}

//! Failures that rest on the hash seed, and with it on the order of a set.

use super::history::{History, Way};

/// A set whose first element is the wrong one in the first four orders that are drawn, each of them always.
const SETS: &str = r#"
=== sets.py
import os


def add(name, count):
    """The length of a file outside with so much more in it."""
    with open(os.environ["OUTSIDE"] + "/" + name, "ab") as file:
        file.write(b"." * count)
        file.flush()
        return file.tell()


def first():
    """What a set puts first."""
    own = str(hash("alpha"))
    place = add(own, 0) or add(own, add("orders", 1))
    if place <= 4:
        raise LookupError("it is beta")
    return "alpha"


def tidy():
    word = "alpha"
    return word
=== test_sets.py
import sets


def test_first():
    assert sets.FIRST() == "alpha"


def test_first_again():
    assert sets.FIRST() == "alpha"


def test_tidy():
    assert sets.tidy() == "alpha"
"#;

const FIRST: &str = "test_sets.py::test_first";
const AGAIN: &str = "test_sets.py::test_first_again";

#[test]
fn an_old_flake_of_the_hash_seed_is_told_by_a_seed_with_which_it_passes() {
    let Some(history) = History::at(&SETS.replace("FIRST", "first")) else {
        return;
    };
    history.change(
        Way::Branch,
        &[("sets.py", "return word", "return str(word)")],
    );
    let said = history.run(&[]);
    for test in [FIRST, AGAIN] {
        said.is(test, "not-yours", &["at-base"]);
        said.fails_as(test, "flaky");
        assert_eq!(said.finding(test)["kind"], "hash-seed", "{said}");
    }
    said.ends(0);
}

#[test]
fn a_change_that_brings_the_hash_seed_in_is_not_excused_by_a_seed_with_which_it_passes() {
    let Some(history) = History::at(&SETS.replace("FIRST", "tidy")) else {
        return;
    };
    let edits = [
        (
            "test_sets.py",
            "first():\n    assert sets.tidy",
            "first():\n    assert sets.first",
        ),
        ("sets.py", "return word", "return str(word)"),
    ];
    history.change(Way::Branch, &edits);
    let said = history.run(&[]);
    said.ends(1).is(FIRST, "yours", &["fails-more"]);
}

//! Whose failure is it? Small histories in which a change makes a test fail, or has nothing to do with it.
//!
//! Each test was written from the question and the documents, before there was an answer, and without a
//! look at the code that gives it. It says what must be answered, and first that plain pytest sees what
//! the test takes for granted.

mod base;
mod chance;
mod ci;
mod documents;
mod drawn;
mod environment;
mod exposed;
mod history;
mod ignored;
mod innocent;
mod java;
mod java_unseen;
mod leaks;
mod looks;
mod merges;
mod neighbours;
mod outage;
mod parameters;
mod polluters;
mod process_state;
mod quarantine;
mod recorded;
mod said;
mod seeds;
mod setup;
mod subtests;
mod surroundings;
mod threshold;
mod triage;
mod upgrades;

use history::{Edit, History, Way};

/// A change that makes one test fail for those who run the suite, and for nobody who runs that test
/// alone. It is the change's, at home and in a CI.
fn leak(victim: &str, base: &str, edits: &[Edit]) {
    leak_because(victim, base, edits, &["fails-more"]);
}

/// The same for one of these reasons.
fn leak_because(victim: &str, base: &str, edits: &[Edit], because: &[&str]) {
    let Some(home) = History::at(base) else {
        return;
    };
    home.change(Way::Uncommitted, edits);
    home.premise(&[victim]);
    let alone = home.fail_plainly(&home.tree(), &[victim]);
    assert_eq!(alone, [""; 0], "alone");
    home.run(&[]).ends(1).is(victim, "yours", because);

    let ci = History::at(base).unwrap().in_ci();
    ci.change(Way::Branch, edits);
    ci.run(&[]).ends(1).is(victim, "yours", because);
}

/// A change that makes one test fail, however it is run again. It is the change's, at home and in a CI.
fn bug(test: &str, base: &str, edits: &[Edit], because: &[&str]) {
    let Some(home) = History::at(base) else {
        return;
    };
    home.change(Way::Uncommitted, edits);
    home.premise(&[test]);
    home.run(&[]).ends(1).is(test, "yours", because);

    let ci = History::at(base).unwrap().in_ci();
    ci.change(Way::Branch, edits);
    ci.run(&[]).ends(1).is(test, "yours", because);
}

/// A shop of which one function can be changed so that it leaks, and a victim.
const SHOP: &str = r#"
=== shop.py
PRICES = {"tea": 100, "mug": 250}


def price(item):
    return PRICES[item]


def reduced(item, percent):
    return price(item) * (100 - percent) // 100
=== test_shop.py
import shop


def test_reduced():
    assert shop.reduced("tea", 10) == 90


def test_price():
    assert shop.price("tea") == 100
=== docs/notes.md
Tea and mugs.
=== unused.py
def size():
    return 3
"#;

/// The victim of `LEAK`.
const VICTIM: &str = "test_shop.py::test_price";

/// The change of `SHOP` with which this began.
const LEAK: Edit = (
    "shop.py",
    "    return price(item) * (100 - percent) // 100",
    "    PRICES[item] = PRICES[item] * (100 - percent) // 100\n    return PRICES[item]",
);

/// A change of `SHOP` that breaks a test for good.
const BUG: Edit = ("shop.py", "(100 - percent)", "(99 - percent)");

/// The test that `BUG` breaks.
const BROKEN: &str = "test_shop.py::test_reduced";

/// A change that nobody runs.
const NOTES: Edit = ("docs/notes.md", "Tea", "Coffee");

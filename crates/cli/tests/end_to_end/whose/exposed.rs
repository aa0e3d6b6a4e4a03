//! Changes of the order: a test is removed, moved or renamed, and another one shows what it always needed.

use std::fs;

use super::history::{History, Way};

/// A test that needs what the first one does.
const NEEDY: &str = r#"
=== registry.py
NAMES = []
=== test_a.py
import registry


def test_set():
    registry.NAMES.append("a")
    assert registry.NAMES
=== test_b.py
import registry


def test_use():
    assert registry.NAMES
"#;

#[test]
fn a_removed_test_whose_doing_another_needed() {
    let Some(history) = History::at(NEEDY) else {
        return;
    };
    history.begin(Way::Branch);
    fs::remove_file(history.tree().join("test_a.py")).unwrap();
    history.end(Way::Branch);
    history.premise(&["test_b.py::test_use"]);
    let said = history.run(&[]);
    said.ends(1)
        .is("test_b.py::test_use", "yours", &["exposed"]);
    let ci = history.in_ci();
    ci.run(&[])
        .ends(1)
        .is("test_b.py::test_use", "yours", &["exposed"]);
}

/// A polluter, a cleaner and a victim.
const CLEANED: &str = "
=== state.py
LEVEL = 1
=== test_a.py
import state


def test_high():
    state.LEVEL = 9
    assert state.LEVEL == 9
=== test_b.py
import state


def test_reset():
    state.LEVEL = 1
    assert state.LEVEL == 1
=== test_c.py
import state


def test_level():
    assert state.LEVEL == 1
";

#[test]
fn a_removed_test_that_cleaned_up() {
    let Some(history) = History::at(CLEANED) else {
        return;
    };
    fs::remove_file(history.tree().join("test_b.py")).unwrap();
    history.premise(&["test_c.py::test_level"]);
    let said = history.run(&[]);
    said.ends(1)
        .is("test_c.py::test_level", "yours", &["exposed"]);
    let polluters = &said.finding("test_c.py::test_level")["whose"]["polluters"];
    assert_eq!(
        *polluters,
        serde_json::json!(["test_a.py::test_high"]),
        "{said}"
    );
}

#[test]
fn a_crash_that_hides_what_a_test_needs_exposes_nothing() {
    let base = format!(
        "{NEEDY}{}",
        "
=== test_ab.py
import os


def test_crash():
    os._exit(3)
=== docs/notes.md
Tea.
=== shop.py
PRICE = 1
=== test_price.py
import shop


def test_price():
    assert shop.PRICE
"
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(Way::Branch, &[("shop.py", "PRICE = 1", "PRICE = 2")]);
    let said = history.run(&[]);
    let test = "test_b.py::test_use";
    said.ends(1)
        .is(test, "not-yours", &["at-base", "untouched"]);
}

#[test]
fn a_crash_does_not_hide_that_a_removed_test_exposed_another() {
    let base = format!(
        "{NEEDY}{}",
        "
=== test_aa.py
import os


def test_crash():
    os._exit(3)
"
    );
    let base = base.replace("test_a.py", "test_ab.py");
    let Some(history) = History::at(&base) else {
        return;
    };
    history.begin(Way::Branch);
    fs::remove_file(history.tree().join("test_ab.py")).unwrap();
    history.end(Way::Branch);
    let said = history.run(&[]);
    said.ends(1).is_not_acquitted("test_b.py::test_use");
}

#[test]
fn a_skipped_test_that_cleaned_up() {
    let Some(history) = History::at(CLEANED) else {
        return;
    };
    let edit = (
        "test_b.py",
        "def test_reset",
        "import pytest\n\n\n@pytest.mark.skip\ndef test_reset",
    );
    history.change(Way::Branch, &[edit]);
    history.premise(&["test_c.py::test_level"]);
    history
        .run(&[])
        .ends(1)
        .is("test_c.py::test_level", "yours", &["exposed", "fails-more"]);
}

#[test]
fn a_file_of_a_polluter_that_moves_before_its_victim() {
    let Some(history) = History::at(
        "
=== state.py
LEVEL = 1
=== test_m.py
import state


def test_level():
    assert state.LEVEL == 1
=== test_z.py
import state


def test_high():
    state.LEVEL = 9
    assert state.LEVEL == 9
",
    ) else {
        return;
    };
    history.begin(Way::Branch);
    history.git(&["mv", "test_z.py", "test_a.py"]);
    history.end(Way::Branch);
    history.premise(&["test_m.py::test_level"]);
    history
        .run(&[])
        .ends(1)
        .is("test_m.py::test_level", "yours", &["exposed"]);
}

#[test]
fn a_victim_whose_file_moves_behind_its_polluter() {
    let Some(history) = History::at(
        "
=== state.py
LEVEL = 1
=== test_a.py
import state


def test_level():
    assert state.LEVEL == 1
=== test_m.py
import state


def test_high():
    state.LEVEL = 9
    assert state.LEVEL == 9
",
    ) else {
        return;
    };
    history.begin(Way::Branch);
    history.git(&["mv", "test_a.py", "test_z.py"]);
    history.end(Way::Branch);
    history.premise(&["test_z.py::test_level"]);
    history
        .run(&[])
        .ends(1)
        .is("test_z.py::test_level", "yours", &["exposed", "new-test"]);
}

#[test]
fn two_tests_that_change_places_in_a_file() {
    let [level, high] = [
        "def test_level():\n    assert state.LEVEL == 1\n",
        "def test_high():\n    state.LEVEL = 9\n    assert state.LEVEL == 9\n",
    ];
    let base =
        format!("\n=== state.py\nLEVEL = 1\n=== test_it.py\nimport state\n\n\n{level}\n\n{high}");
    let Some(history) = History::at(&base) else {
        return;
    };
    history.begin(Way::Branch);
    history.write(
        "test_it.py",
        &format!("import state\n\n\n{high}\n\n{level}"),
    );
    history.end(Way::Branch);
    history.premise(&["test_it.py::test_level"]);
    history.run(&[]).ends(1).is(
        "test_it.py::test_level",
        "yours",
        &["exposed", "fails-more"],
    );
}

//! The same questions for failures of another command: `pytest --junitxml report.xml || unflake triage report.xml`.

use super::history::{Edit, History, Way};
use super::{BROKEN, BUG, LEAK, SHOP, VICTIM};

/// A report of plain pytest in the work tree, where no git ignores it.
fn report(history: &History) {
    report_of(history, &[]);
}

/// The same of these files, in this order.
fn report_of(history: &History, files: &[&str]) {
    let mut pytest = history.command(history.python(), &history.tree());
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.args(files);
    let output = pytest.arg("--junitxml=report.xml").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

fn yours(test: &str, base: &str, edits: &[Edit], because: &[&str]) {
    for ci in [false, true] {
        let Some(history) = History::at(base) else {
            return;
        };
        history.change(Way::Branch, edits);
        history.premise(&[test]);
        report(&history);
        if ci {
            history.set("CI", "true");
        }
        let arguments = ["--forgive", "pre-existing", "report.xml"];
        let said = history.unflake("triage", &arguments);
        said.ends(1).is(test, "yours", because);
    }
}

#[test]
fn a_bug_of_a_commit_is_yours_although_the_report_is_an_untracked_file() {
    yours(BROKEN, SHOP, &[BUG], &["fails-more"]);
}

#[test]
fn a_leak_is_yours_in_the_order_of_the_report() {
    yours(VICTIM, SHOP, &[LEAK], &["fails-more"]);
}

#[test]
fn a_victim_of_the_reports_order_is_named_with_its_polluter() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    report(&history);
    let said = history.unflake("triage", &["--check-base", "report.xml"]);
    let whose = &said.finding(VICTIM)["whose"];
    let polluters = whose["polluters"].as_array().unwrap();
    assert_eq!(*polluters, ["test_shop.py::test_reduced"], "{said}");
}

#[test]
fn a_product_that_is_random_now_is_yours() {
    let base = "\n=== pick.py\nimport coin\n\n\ndef pick():\n    return True\n\
                === test_pick.py\nimport pick\n\n\ndef test_pick():\n    assert pick.pick()\n";
    let edit = ("pick.py", "return True", "return coin.toss()");
    yours("test_pick.py::test_pick", base, &[edit], &["fails-more"]);
}

#[test]
fn a_new_flaky_test_is_yours() {
    let new = "import coin\n\n\ndef test_new():\n    assert coin.toss()\n";
    let edit = ("test_new.py", "", new);
    yours("test_new.py::test_new", SHOP, &[edit], &["new-test"]);
}

#[test]
fn an_old_coin_is_not_yours() {
    let base = "\n=== test_coin.py\nimport coin\n\n\ndef test_coin():\n    assert coin.toss()\n\
                === docs/notes.md\nTea.\n";
    let Some(history) = History::at(base) else {
        return;
    };
    history.change(Way::Branch, &[("docs/notes.md", "Tea", "Coffee")]);
    report(&history);
    let said = history.unflake("triage", &["report.xml"]);
    let test = "test_coin.py::test_coin";
    said.ends(0)
        .is(test, "not-yours", &["untouched", "at-base"]);
    said.fails_as(test, "flaky");
}

#[test]
fn an_old_bug_is_not_yours_and_is_forgiven_on_demand() {
    let Some(history) = History::at(&SHOP.replace(BUG.1, BUG.2)) else {
        return;
    };
    let harmless = ("shop.py", "\"mug\": 250", "\"mug\": 300");
    history.change(Way::Branch, &[harmless]);
    report(&history);
    let said = history.unflake("triage", &["report.xml"]);
    said.ends(1).is(BROKEN, "not-yours", &["at-base"]);
    said.fails_as(BROKEN, "broken");
    let forgiving = ["--forgive", "pre-existing", "report.xml"];
    history.unflake("triage", &forgiving).ends(0);
}

/// Two tests that pass in the project's own order, and of which the first fails after the second.
const ORDERED: &str = "
=== state.py
LEVEL = 1


def name():
    return \"state\"
=== test_a.py
import state


def test_level():
    state.name()
    assert state.LEVEL == 1
=== test_z.py
import state


def test_high():
    state.LEVEL = 9
    assert state.LEVEL == 9
";

#[test]
fn what_fails_in_the_order_of_a_report_is_compared_in_that_order() {
    let Some(history) = History::at(ORDERED) else {
        return;
    };
    history.change(Way::Branch, &[("state.py", "\"state\"", "\"level\"")]);
    report_of(&history, &["test_z.py", "test_a.py"]);
    let said = history.unflake("triage", &["report.xml"]);
    said.ends(0)
        .is("test_a.py::test_level", "not-yours", &["at-base"]);
}

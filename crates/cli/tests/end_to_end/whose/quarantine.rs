//! A test in quarantine: what is not known and not yours is forgiven, and what is yours never.

use super::history::{History, Way};
use super::{BROKEN, BUG, LEAK, SHOP, VICTIM};

/// The files with a quarantine of one test.
fn quarantined(files: &str, test: &str) -> String {
    format!(
        "{files}=== unflake-quarantine.toml\n[[quarantine]]\ntest = \"{test}\"\n\
         reason = \"old\"\nowner = \"@shop\"\nuntil = \"2999-01-01\"\n"
    )
}

#[test]
fn a_leak_of_the_change_is_not_forgiven() {
    for ci in [false, true] {
        let Some(history) = History::at(&quarantined(SHOP, VICTIM)) else {
            return;
        };
        history.change(Way::Branch, &[LEAK]);
        history.premise(&[VICTIM]);
        if ci {
            history.set("CI", "true");
        }
        let said = history.run(&[]);
        said.ends(1).is(VICTIM, "yours", &["fails-more"]);
        assert!(said.finding(VICTIM)["quarantine"].is_object(), "{said}");
    }
}

#[test]
fn a_bug_of_the_change_is_not_forgiven() {
    let Some(history) = History::at(&quarantined(SHOP, BROKEN)) else {
        return;
    };
    history.change(Way::Branch, &[BUG]);
    history.premise(&[BROKEN]);
    history
        .run(&[])
        .ends(1)
        .is(BROKEN, "yours", &["fails-more"]);
}

#[test]
fn a_new_test_is_not_forgiven() {
    let Some(history) = History::at(&quarantined(SHOP, "test_new.py::test_new")) else {
        return;
    };
    let new = "import coin\n\n\ndef test_new():\n    assert coin.toss()\n";
    history.change(Way::Branch, &[("test_new.py", "", new)]);
    history
        .run(&[])
        .ends(1)
        .is("test_new.py::test_new", "yours", &["new-test"]);
}

#[test]
fn what_is_not_known_is_forgiven() {
    let files = quarantined(&SHOP.replace(LEAK.1, LEAK.2), VICTIM);
    let Some(history) = History::outside_git(&files) else {
        return;
    };
    history
        .run(&[])
        .ends(0)
        .is(VICTIM, "not-known", &["no-repository"]);
    let broken = quarantined(&SHOP.replace(BUG.1, BUG.2), BROKEN);
    let history = History::outside_git(&broken).unwrap();
    history
        .run(&[])
        .ends(0)
        .is(BROKEN, "not-known", &["no-repository"]);
}

#[test]
fn an_old_bug_is_forgiven() {
    let files = quarantined(&SHOP.replace(BUG.1, BUG.2), BROKEN);
    let Some(history) = History::at(&files) else {
        return;
    };
    let harmless = ("shop.py", "\"mug\": 250", "\"mug\": 300");
    history.change(Way::Branch, &[harmless]);
    let said = history.run(&[]);
    said.ends(0).is(BROKEN, "not-yours", &["at-base"]);
    said.fails_as(BROKEN, "broken");
}

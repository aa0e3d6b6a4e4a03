//! Branches that are stacked or merged, and submodules.

use std::path::Path;

use super::history::{History, Way};
use super::{BROKEN, BUG, LEAK, NOTES, SHOP, VICTIM};

#[test]
fn a_stacked_branch_is_compared_with_main_at_home() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[BUG]);
    history.git(&["switch", "--quiet", "--create", "stacked"]);
    history.edit(&[NOTES]);
    history.commit("on top");
    history
        .run(&[])
        .ends(1)
        .is(BROKEN, "yours", &["fails-more"]);
}

#[test]
fn a_stacked_pull_request_is_compared_with_its_target() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::PushedBranch, &[BUG]);
    history.git(&["switch", "--quiet", "--no-track", "--create", "stacked"]);
    history.edit(&[NOTES]);
    history.commit("on top");
    for (name, value) in [
        ("CI", "true"),
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_BASE_REF", "feature"),
        ("GITHUB_HEAD_REF", "stacked"),
    ] {
        history.set(name, value);
    }
    let said = history.run(&[]);
    said.ends(1)
        .is(BROKEN, "not-yours", &["at-base", "untouched"]);
    said.fails_as(BROKEN, "broken");
    history.run(&["--forgive", "pre-existing"]).ends(0);
}

/// Main goes on with an edit while the branch has its own, and is then merged into the branch.
fn merge_main(main: super::Edit, branch: super::Edit) -> Option<History> {
    let history = History::at(SHOP)?;
    history.change(Way::Branch, &[branch]);
    history.git(&["switch", "--quiet", "main"]);
    history.change(Way::Main, &[main]);
    history.git(&["switch", "--quiet", "feature"]);
    history.git(&["merge", "--quiet", "--no-edit", "origin/main"]);
    Some(history)
}

#[test]
fn a_bug_that_main_brought_by_a_merge_is_not_the_branchs() {
    let Some(history) = merge_main(BUG, NOTES) else {
        return;
    };
    let said = history.run(&[]);
    said.ends(1)
        .is(BROKEN, "not-yours", &["at-base", "untouched"]);
    said.fails_as(BROKEN, "broken");
    history.run(&["--forgive", "pre-existing"]).ends(0);
}

#[test]
fn a_leak_that_main_brought_by_a_merge_is_not_the_branchs() {
    let Some(history) = merge_main(LEAK, NOTES) else {
        return;
    };
    let said = history.run(&[]);
    said.ends(0)
        .is(VICTIM, "not-yours", &["at-base", "untouched"]);
    said.fails_as(VICTIM, "flaky");
}

#[test]
fn a_leak_of_the_branch_stays_its_own_after_a_merge() {
    let Some(history) = merge_main(NOTES, LEAK) else {
        return;
    };
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn a_merge_on_main_is_compared_with_its_first_parent() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    history.git(&["switch", "--quiet", "main"]);
    history.change(Way::Main, &[NOTES]);
    let before = history.git(&["rev-parse", "HEAD"]);
    history.git(&["merge", "--quiet", "--no-ff", "--no-edit", "feature"]);
    history.git(&["push", "--quiet", "origin", "main"]);
    let said = history.run(&[]);
    said.ends(1).is(VICTIM, "yours", &["fails-more"]);
    let base = &said.finding(VICTIM)["whose"]["base"]["commit"];
    assert_eq!(*base, before.as_str(), "{said}");
}

/// A library in a repository of its own, in the tree as a submodule.
fn with_submodule(files: &str) -> Option<History> {
    let history = History::at(files)?;
    let library = history.place("library");
    history.git(&["init", "--quiet", "--initial-branch=main", &library]);
    std::fs::write(Path::new(&library).join("rate.py"), "RATE = 1\n").unwrap();
    commit_in(&history, &library);
    history.git(&["submodule", "--quiet", "add", &library, "lib"]);
    history.commit("base");
    history.git(&["push", "--quiet", "origin", "main"]);
    Some(history)
}

fn commit_in(history: &History, folder: &str) {
    history.git(&["-C", folder, "add", "--all"]);
    history.git(&["-C", folder, "commit", "--quiet", "--message=rate"]);
}

#[test]
fn a_bug_in_a_submodule_that_was_bumped_is_not_acquitted() {
    let Some(history) = with_submodule(
        "\n=== pytest.ini\n[pytest]\npythonpath = . lib\n\
         === test_rate.py\nimport rate\n\n\ndef test_rate():\n    assert rate.RATE == 1\n",
    ) else {
        return;
    };
    let test = "test_rate.py::test_rate";
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [""; 0]);
    history.begin(Way::Branch);
    history.write("lib/rate.py", "RATE = 2\n");
    commit_in(&history, "lib");
    history.end(Way::Branch);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [test]);
    let said = history.run(&["--check-base", "--forgive", "pre-existing"]);
    said.ends(1).is_not_acquitted(test);
    // The same where the submodule is only edited.
    history.git(&["switch", "--quiet", "main"]);
    history.git(&["-C", "lib", "checkout", "--quiet", "HEAD^"]);
    history.write("lib/rate.py", "RATE = 3\n");
    let said = history.run(&["--check-base", "--forgive", "pre-existing"]);
    said.ends(1).is_not_acquitted(test);
}

#[test]
fn an_old_coin_beside_a_submodule_is_not_yours() {
    let Some(history) = with_submodule(
        "\n=== docs/notes.md\nTea.\n\
         === test_coin.py\nimport coin\n\n\ndef test_coin():\n    assert coin.toss()\n",
    ) else {
        return;
    };
    history.change(Way::Branch, &[NOTES]);
    history.run(&[]).ends(0).is(
        "test_coin.py::test_coin",
        "not-yours",
        &["untouched", "at-base"],
    );
}

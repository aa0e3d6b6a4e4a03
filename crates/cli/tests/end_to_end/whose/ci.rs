//! What a CI tells of a build: a push to main, a pushed branch, a pull request; and what a CI reads.

use std::fs;

use super::history::{Edit, History, Way};
use super::{BROKEN, BUG, LEAK, NOTES, SHOP, VICTIM};

const BOTH: [(&str, Edit); 2] = [(BROKEN, BUG), (VICTIM, LEAK)];

fn set_all(history: &History, variables: &[(&str, &str)]) {
    history.set("CI", "true");
    for (name, value) in variables {
        history.set(name, value);
    }
}

/// What GitHub tells of a push to a branch.
fn pushed_on_github(history: &History, branch: &str, before: &str) {
    let after = history.git(&["rev-parse", "HEAD"]);
    let event = history.place("event.json");
    let reference = format!("refs/heads/{branch}");
    let text = format!(
        r#"{{"ref": "{reference}", "before": "{before}", "after": "{after}",
            "repository": {{"default_branch": "main"}}}}"#
    );
    fs::write(&event, text).unwrap();
    set_all(
        history,
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", "push"),
            ("GITHUB_EVENT_PATH", &event),
            ("GITHUB_REF", &reference),
            ("GITHUB_REF_NAME", branch),
            ("GITHUB_SHA", &after),
        ],
    );
}

/// Two commits on main that are pushed at once, the bad one first. Gives the commit before them.
fn push_two(history: &History, edit: Edit) -> String {
    let before = history.git(&["rev-parse", "HEAD"]);
    history.edit(&[edit]);
    history.commit("the bad one");
    history.edit(&[NOTES]);
    history.commit("the good one");
    history.git(&["push", "--quiet", "origin", "main"]);
    before
}

#[test]
fn a_push_to_main_on_github_begins_at_what_was_there_before() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        let before = push_two(&history, edit);
        pushed_on_github(&history, "main", &before);
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
        let base = &said.finding(test)["whose"]["base"]["commit"];
        assert_eq!(*base, before.as_str(), "{said}");
    }
}

#[test]
fn a_push_to_main_on_gitlab_begins_at_what_was_there_before() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    let before = push_two(&history, LEAK);
    history.git(&["switch", "--quiet", "--detach"]);
    set_all(
        &history,
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", "push"),
            ("CI_COMMIT_BEFORE_SHA", &before),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_REF_NAME", "main"),
            ("CI_DEFAULT_BRANCH", "main"),
        ],
    );
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn a_build_of_jenkins_begins_at_the_last_successful_one() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    let before = push_two(&history, LEAK);
    history.git(&["switch", "--quiet", "--detach"]);
    set_all(
        &history,
        &[
            ("JENKINS_URL", "http://127.0.0.1/"),
            ("BUILD_NUMBER", "7"),
            ("BRANCH_NAME", "main"),
            ("GIT_BRANCH", "origin/main"),
            ("GIT_PREVIOUS_SUCCESSFUL_COMMIT", &before),
        ],
    );
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn a_push_to_main_without_any_word_begins_at_the_commit_before() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Main, &[LEAK]);
    history.set("CI", "true");
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn a_pushed_branch_without_a_pull_request_began_at_main() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::PushedBranch, &[edit]);
        let first = history.git(&["rev-parse", "HEAD"]);
        history.edit(&[NOTES]);
        history.commit("a second one");
        history.git(&["push", "--quiet", "origin", "feature"]);
        // What was pushed before has the bug as well, and nobody has looked at it.
        pushed_on_github(&history, "feature", &first);
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn a_new_branch_on_github_has_no_commit_before() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::PushedBranch, &[LEAK]);
    pushed_on_github(&history, "feature", &"0".repeat(40));
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn a_pull_request_on_github_is_a_merge_that_nobody_made() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::PushedBranch, &[edit]);
        history.git(&["switch", "--quiet", "main"]);
        history.change(Way::Main, &[NOTES]);
        history.git(&["switch", "--quiet", "--detach"]);
        history.git(&["merge", "--quiet", "--no-ff", "--no-edit", "feature"]);
        set_all(
            &history,
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_EVENT_NAME", "pull_request"),
                ("GITHUB_BASE_REF", "main"),
                ("GITHUB_HEAD_REF", "feature"),
                ("GITHUB_REF", "refs/pull/1/merge"),
            ],
        );
        history.run(&[]).ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn a_merge_request_on_gitlab_is_compared_with_its_target() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    let base = history.git(&["rev-parse", "HEAD"]);
    history.change(Way::PushedBranch, &[LEAK]);
    history.git(&["switch", "--quiet", "--detach"]);
    set_all(
        &history,
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", "merge_request_event"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &base),
        ],
    );
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
}

#[test]
fn junit_xml_has_a_failure_for_what_is_not_forgiven_and_only_for_that() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    let file = history.place("report.xml");
    history.run(&["--junit", &file]).ends(1);
    let xml = fs::read_to_string(&file).unwrap();
    assert!(xml.contains("<failure"), "{xml}");
    assert!(!xml.contains("flakyFailure"), "{xml}");

    let base = "\n=== test_coin.py\nimport coin\n\n\ndef test_coin():\n    assert coin.toss()\n\
                === docs/notes.md\nTea.\n";
    let history = History::at(base).unwrap();
    history.change(Way::Branch, &[NOTES]);
    let file = history.place("report.xml");
    history.run(&["--junit", &file]).ends(0);
    let xml = fs::read_to_string(&file).unwrap();
    assert!(!xml.contains("<failure"), "{xml}");
    assert!(xml.contains("flakyFailure"), "{xml}");
}

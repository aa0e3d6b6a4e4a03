//! The right base: what moves it, and what does not.

use std::path::PathBuf;

use super::history::{Edit, History, Way};
use super::{BROKEN, BUG, LEAK, NOTES, SHOP, VICTIM};

/// The test that the bug breaks and the victim of the leak.
const BOTH: [(&str, Edit); 2] = [(BROKEN, BUG), (VICTIM, LEAK)];

#[test]
fn an_untracked_file_does_not_move_it() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::Branch, &[edit]);
        history.write("scratch.txt", "mine\n");
        history.premise(&[test]);
        history.run(&[]).ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn an_uncommitted_change_does_not_move_it() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::Branch, &[edit]);
        history.edit(&[NOTES]);
        history.run(&[]).ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn an_uncommitted_change_on_main_does_not_excuse_the_commit_below_it() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::Main, &[edit]);
        history.edit(&[NOTES]);
        history.run(&[]).ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn a_file_that_the_suite_leaves_does_not_move_it() {
    let base = SHOP.replace(
        "def test_price():\n",
        "def test_price():\n    open(\"left.txt\", \"w\").close()\n",
    );
    for (test, edit) in BOTH {
        let Some(history) = History::at(&base) else {
            return;
        };
        history.change(Way::PushedBranch, &[edit]);
        for _ in 0..2 {
            let said = history.run(&["--forgive", "pre-existing"]);
            said.ends(1).is(test, "yours", &["fails-more"]);
        }
    }
}

#[test]
fn a_branch_without_an_upstream_began_at_main() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        let base = history.git(&["rev-parse", "HEAD"]);
        history.change(Way::Branch, &[edit]);
        history.edit(&[NOTES]);
        history.commit("a second one");
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
        let found = &said.finding(test)["whose"]["base"]["commit"];
        assert_eq!(*found, base.as_str(), "{said}");
    }
}

#[test]
fn an_upstream_of_the_same_name_is_a_copy_and_no_base() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.change(Way::PushedBranch, &[edit]);
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
        history.edit(&[NOTES]);
        let said = history.run(&["--forgive", "pre-existing"]);
        said.ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn main_without_a_remote_is_a_base_as_well() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.git(&["remote", "remove", "origin"]);
    history.change(Way::Branch, &[BUG]);
    history.edit(&[NOTES]);
    history.commit("a second one");
    history
        .run(&[])
        .ends(1)
        .is(BROKEN, "yours", &["fails-more"]);
}

#[test]
fn a_default_branch_of_another_name_is_the_base() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.git(&["push", "--quiet", "origin", "main:trunk"]);
    history.git(&["fetch", "--quiet", "origin"]);
    history.git(&["remote", "set-head", "origin", "trunk"]);
    let origin = history.place("origin.git");
    history.git(&["-C", &origin, "symbolic-ref", "HEAD", "refs/heads/trunk"]);
    history.git(&["push", "--quiet", "origin", "--delete", "main"]);
    history.git(&["switch", "--quiet", "--create", "work"]);
    history.git(&["branch", "--quiet", "-D", "main"]);
    history.edit(&[BUG]);
    history.commit("change");
    history.edit(&[NOTES]);
    history.commit("a second one");
    history
        .run(&[])
        .ends(1)
        .is(BROKEN, "yours", &["fails-more"]);
}

/// A history with a branch of two commits, the first of them a bug; `prepare` arranges the others.
fn second_commit(prepare: impl Fn(&History)) -> Option<(History, String, String)> {
    let history = History::at(SHOP)?;
    let base = history.git(&["rev-parse", "HEAD"]);
    history.git(&["remote", "remove", "origin"]);
    history.git(&["branch", "--quiet", "--move", "main", "trunk"]);
    history.git(&["switch", "--quiet", "--create", "feature"]);
    history.edit(&[BUG]);
    let bug = history.commit("change");
    history.edit(&[NOTES]);
    history.commit("a second one");
    prepare(&history);
    Some((history, base, bug))
}

fn began_at(history: &History, base: &str) {
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1).is(BROKEN, "yours", &["fails-more"]);
    let found = &said.finding(BROKEN)["whose"]["base"]["commit"];
    assert_eq!(*found, base, "{said}");
}

#[test]
fn the_only_other_branch_is_the_base_where_nobody_names_a_default_one() {
    let Some((history, base, _)) = second_commit(|_| ()) else {
        return;
    };
    began_at(&history, &base);
}

#[test]
fn a_branch_that_was_fetched_by_address_is_a_base_too() {
    let fetched = |history: &History| {
        for (name, from) in [("main", "trunk"), ("feature", "feature")] {
            history.git(&["update-ref", &format!("refs/remotes/origin/{name}"), from]);
        }
        history.git(&["switch", "--quiet", "--detach"]);
        history.git(&["branch", "--quiet", "-D", "trunk", "feature"]);
    };
    let Some((history, base, bug)) = second_commit(fetched) else {
        return;
    };
    history.set("CI", "true");
    history.set("CI_COMMIT_BEFORE_SHA", &bug);
    began_at(&history, &base);
}

#[test]
fn the_commit_before_the_last_is_no_base_where_the_default_branch_is_not_known() {
    let Some((history, base, bug)) = second_commit(|history| {
        history.git(&["branch", "other", "trunk"]);
    }) else {
        return;
    };
    history.set("CI_COMMIT_BEFORE_SHA", &bug);
    let said = history.run(&["--forgive", "pre-existing"]);
    said.ends(1).is(BROKEN, "not-known", &["no-base"]);
    assert!(said.to_string().contains("no default branch"), "{said}");
    history.write("unflake.toml", "[intersect]\nbase = \"trunk\"\n");
    began_at(&history, &base);
}

#[test]
fn a_detached_head_began_at_main() {
    for (test, edit) in BOTH {
        let Some(history) = History::at(SHOP) else {
            return;
        };
        history.git(&["switch", "--quiet", "--detach"]);
        history.edit(&[edit]);
        history.commit("change");
        history.edit(&[NOTES]);
        history.commit("a second one");
        history.run(&[]).ends(1).is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn a_virtualenv_that_is_not_ignored_is_no_change() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    for number in 0..60 {
        let name = format!(".venv/lib/python3/site-packages/many/part{number}.py");
        history.write(&name, "PART = 1\n");
    }
    history.change(Way::Uncommitted, &[LEAK]);
    let said = history.run(&["--", "--ignore=.venv"]);
    said.ends(1).is(VICTIM, "yours", &["fails-more"]);
    let whose = &said.finding(VICTIM)["whose"];
    assert_eq!(whose["changed_files"], 1, "{said}");
}

#[test]
fn long_lists_of_changed_files_are_cut_at_ten() {
    let base = SHOP.replace(
        "def price(item):\n",
        "import glob\n\n\ndef price(item):\n    [open(name).close() for name in glob.glob(\"data/*\")]\n",
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    for number in 0..60 {
        history.write(&format!("data/{number}.txt"), "1\n");
    }
    history.change(Way::Branch, &[LEAK]);
    let said = history.run(&[]);
    said.ends(1).is(VICTIM, "yours", &["fails-more"]);
    let whose = &said.finding(VICTIM)["whose"];
    assert_eq!(whose["changed_files"], 61, "{said}");
    assert!(whose["touches"].as_array().unwrap().len() <= 11, "{said}");
}

#[test]
fn a_shallow_clone_has_no_base() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Main, &[LEAK]);
    let clone = PathBuf::from(history.place("clone"));
    let source = format!("file://{}", history.place("origin.git"));
    let target = clone.to_str().unwrap();
    history.git(&["clone", "--quiet", "--depth=1", &source, target]);
    let said = history.unflake_in(&clone, "run", &[]);
    said.ends(1).is(VICTIM, "not-known", &["no-base"]);
    history
        .unflake_in(&clone, "run", &["--not-known", "pass"])
        .ends(0);
}

#[test]
fn a_first_commit_has_no_base() {
    let Some(history) = History::outside_git(&SHOP.replace(LEAK.1, LEAK.2)) else {
        return;
    };
    history.git(&["init", "--quiet", "--initial-branch=main"]);
    history.commit("all");
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "not-known", &["no-base"]);
}

#[test]
fn without_git_it_is_not_known_whose_it_is() {
    let Some(history) = History::outside_git(&SHOP.replace(LEAK.1, LEAK.2)) else {
        return;
    };
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [VICTIM]);
    let said = history.run(&[]);
    said.ends(1).is(VICTIM, "not-known", &["no-repository"]);
    said.fails_as(VICTIM, "flaky");
    history.run(&["--not-known", "pass"]).ends(0);
    history.write("unflake.toml", "[run]\nnot-known = \"pass\"\n");
    history.run(&[]).ends(0);
    history.run(&["--not-known", "fail"]).ends(1);
}

#[test]
fn a_base_that_cannot_be_collected_is_no_evidence() {
    let base = "
=== conftest.py
this is no Python
=== shop.py
import coin


def buy():
    return coin.toss()
=== test_shop.py
import shop


def test_buy():
    assert shop.buy()
";
    let Some(history) = History::at(base) else {
        return;
    };
    history.change(
        Way::Branch,
        &[("conftest.py", "this is no Python", "NAME = 1")],
    );
    let test = "test_shop.py::test_buy";
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [test]);
    let said = history.run(&[]);
    said.ends(1).is(test, "not-known", &["base-cannot-run"]);
    said.fails_as(test, "flaky");
    history.run(&["--not-known", "pass"]).ends(0);
}

#[test]
fn a_base_that_may_not_be_run_is_not_asked() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    history
        .run(&["--check-base=never"])
        .ends(1)
        .is(VICTIM, "not-known", &["not-asked"]);
}

#[test]
fn without_time_for_the_base_it_is_not_known() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    let said = history.run(&["--blame-budget", "0"]);
    said.ends(1).is(VICTIM, "not-known", &["budget"]);
}

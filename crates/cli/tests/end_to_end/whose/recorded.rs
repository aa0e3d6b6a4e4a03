//! What the history knows of earlier runs: it acquits old flakes, and never a change of itself.

use unflake_history::engine::{self, Missing};

use super::history::{History, Way};
use super::{LEAK, SHOP, VICTIM};

const COIN: &str = r#"
=== shop.py
import coin


def greeting():
    return "welcome"


def buy():
    greeting()
    return coin.toss()
=== test_shop.py
import shop


def test_buy():
    assert shop.buy()
=== docs/notes.md
Tea.
"#;

const BUY: &str = "test_shop.py::test_buy";

/// Runs until the coin has failed the suite that many times.
fn run_until_it_failed(history: &History, times: usize) {
    let mut failed = 0;
    for _ in 0..6 * times {
        failed += history.run(&["--check-base=never"]).tests().len();
        if failed >= times {
            return;
        }
    }
    panic!("the coin failed {failed} times only");
}

#[test]
fn a_coin_that_failed_in_clean_runs_of_the_base_is_known_from_the_history() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    run_until_it_failed(&history, 5);
    history.change(Way::Branch, &[("shop.py", "\"welcome\"", "\"hello\"")]);
    // The coin may show heads at first: a run without a failure says nothing.
    is_known(&history, BUY);
}

/// Runs on a branch until the coin fails, and says what is said of that.
fn is_known(history: &History, test: &str) {
    for _ in 0..4 {
        let said = history.run(&["--check-base=never"]);
        if said.tests().is_empty() {
            continue;
        }
        said.ends(0).is(test, "not-yours", &["in-history"]);
        return;
    }
    panic!("the coin did not fail");
}

#[test]
fn a_renamed_test_is_known_by_its_old_name() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    run_until_it_failed(&history, 5);
    history.change(
        Way::Branch,
        &[("test_shop.py", "def test_buy", "def test_purchase")],
    );
    is_known(&history, "test_shop.py::test_purchase");
}

#[test]
fn a_moved_test_is_known_by_its_old_name() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    run_until_it_failed(&history, 5);
    history.begin(Way::Branch);
    std::fs::create_dir(history.tree().join("tests")).unwrap();
    history.git(&["mv", "test_shop.py", "tests/test_trade.py"]);
    history.end(Way::Branch);
    is_known(&history, "tests/test_trade.py::test_buy");
}

#[test]
fn a_new_test_with_the_body_of_an_old_one_is_not_known_by_its_name() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    run_until_it_failed(&history, 5);
    let copy = "\n\ndef test_copy():\n    assert shop.buy()\n";
    history.change(Way::Branch, &[("test_shop.py", "", copy)]);
    for _ in 0..4 {
        let said = history.run(&["--check-base=never"]);
        let test = "test_shop.py::test_copy";
        if said.tests().contains(&test) {
            said.ends(1).is_not_acquitted(test);
            return;
        }
    }
    panic!("the coin did not fail");
}

#[test]
fn runs_of_a_branch_do_not_acquit_it() {
    let base = COIN.replace("return coin.toss()", "return True");
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(
        Way::Branch,
        &[("shop.py", "return True", "return coin.toss()")],
    );
    run_until_it_failed(&history, 3);
    for _ in 0..4 {
        let said = history.run(&[]);
        if said.tests().is_empty() {
            continue;
        }
        said.ends(1).is(BUY, "yours", &["fails-more"]);
        return;
    }
    panic!("the coin did not fail");
}

#[test]
fn runs_of_a_branch_that_is_called_main_do_not_acquit_it() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    history.git(&["branch", "--quiet", "-D", "main"]);
    history.git(&["branch", "--quiet", "--move", "main"]);
    for _ in 0..3 {
        history
            .run(&[])
            .ends(1)
            .is(VICTIM, "yours", &["fails-more"]);
    }
}

#[test]
fn a_leak_of_a_branch_stays_its_own_however_often_it_is_run() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::PushedBranch, &[LEAK]);
    for _ in 0..3 {
        history
            .run(&[])
            .ends(1)
            .is(VICTIM, "yours", &["fails-more"]);
    }
}

#[test]
fn the_second_run_of_a_commit_of_main_does_not_acquit_what_the_first_found_to_be_its_own() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Main, &[LEAK]);
    history
        .run(&[])
        .ends(1)
        .is(VICTIM, "yours", &["fails-more"]);
    history.run(&[]).ends(1).is_not_acquitted(VICTIM);
}

/// The project with a test that leaves a file in the tree.
fn leaves_a_file() -> Option<(History, String)> {
    let leaves =
        "    with open('left.txt', 'a') as left:\n        left.write('x')\n    assert shop.buy()";
    let history = History::at(&COIN.replace("    assert shop.buy()", leaves))?;
    let commit = history.git(&["rev-parse", "HEAD"]);
    Some((history, commit))
}

/// Whether the history has runs of a commit, clean and with changes.
fn has_run(history: &History, store: &str, commit: &str) -> (bool, bool) {
    let path = history.place(store);
    let store = engine::open(path.as_ref(), Missing::Refuse).unwrap();
    let last = |revision: &str| store.first_tested("unflake", revision, i64::MAX).unwrap();
    let has = |revision: &str| last(revision).is_some();
    (has(commit), has(&format!("{commit}+")))
}

#[test]
fn what_an_earlier_run_left_behind_makes_no_tree_dirty() {
    let Some((history, base)) = leaves_a_file() else {
        return;
    };
    for _ in 0..3 {
        history.run(&["--check-base=never", "--junit", "report.xml"]);
        history.run(&["--check-base=never"]);
    }
    assert!(history.tree().join("left.txt").exists());
    assert_eq!(has_run(&history, "history.db", &base), (true, false));
    let said = history.run(&["--check-base=never"]);
    let again = history.run(&["--check-base=never"]);
    let mut said = [said, again].into_iter();
    let failed = said.find(|said| !said.tests().is_empty());
    let failed = failed.expect("no coin shows heads so often");
    failed.ends(0).is(BUY, "not-yours", &["nothing-changed"]);
}

#[test]
fn what_a_person_wrote_makes_a_tree_dirty_although_runs_leave_files_too() {
    let Some((history, base)) = leaves_a_file() else {
        return;
    };
    for name in ["prices.json", "report.xml", "new_prices.py", "new/data.csv"] {
        let store = format!("{}.db", name.replace('/', "-"));
        history.set("UNFLAKE_STORE", &history.place(&store));
        history.run(&["--check-base=never", "--junit", "report.xml"]);
        assert_eq!(has_run(&history, &store, &base), (true, false), "{name}");
        history.write(name, "by a person");
        history.run(&["--check-base=never"]);
        assert_eq!(has_run(&history, &store, &base), (true, true), "{name}");
        std::fs::remove_file(history.tree().join(name)).unwrap();
    }
}

#[test]
fn what_an_earlier_run_left_behind_and_this_one_used_is_not_untouched() {
    let reads = "    with open('left.txt', 'a+') as left:\n        left.seek(0)\n        left.read()\n        left.write('x')\n    assert shop.buy()";
    let Some(history) = History::at(&COIN.replace("    assert shop.buy()", reads)) else {
        return;
    };
    prepare_coin(&history, true);
    history.run(&[]).ends(0);
    history.change(Way::Branch, &[("docs/notes.md", "Tea", "Coffee")]);
    prepare_coin(&history, false);
    history
        .run(&["--check-base=never"])
        .ends(1)
        .is_not_acquitted(BUY);
}

#[test]
fn a_commit_that_was_tested_before_has_changed_nothing() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    let first = history.run(&[]);
    first.ends(1).is(BUY, "not-known", &["no-base"]);
    for _ in 0..6 {
        let said = history.run(&[]);
        if said.tests().is_empty() {
            continue;
        }
        said.ends(0).is(BUY, "not-yours", &["nothing-changed"]);
        return;
    }
    panic!("the coin did not fail again");
}

/// Has the next toss of the coin end so.
fn prepare_coin(history: &History, is_heads: bool) {
    let path = std::path::Path::new(&history.place("outside")).join("coin");
    let mut tossed = std::fs::read(&path).unwrap_or_default();
    while (tossed.len() + 1).count_ones().is_multiple_of(2) != is_heads {
        tossed.push(b'.');
    }
    std::fs::write(&path, tossed).unwrap();
}

#[test]
fn without_git_the_files_of_the_last_run_that_passed_are_the_base() {
    let Some(history) = History::outside_git(COIN) else {
        return;
    };
    prepare_coin(&history, false);
    history
        .run(&[])
        .ends(1)
        .is(BUY, "not-known", &["no-repository"]);
    prepare_coin(&history, true);
    history.run(&[]).ends(0);
    for (edit, because) in [
        (None, "nothing-changed"),
        (Some(("docs/notes.md", "Tea", "Coffee")), "untouched"),
    ] {
        history.edit(&Vec::from_iter(edit));
        prepare_coin(&history, false);
        history.run(&[]).ends(0).is(BUY, "not-yours", &[because]);
    }
}

#[test]
fn without_git_a_file_that_was_used_leaves_it_open() {
    let Some(history) = History::outside_git(COIN) else {
        return;
    };
    prepare_coin(&history, true);
    history.run(&[]).ends(0);
    history.edit(&[("shop.py", "\"welcome\"", "\"hello\"")]);
    for _ in 0..2 {
        prepare_coin(&history, false);
        history
            .run(&[])
            .ends(1)
            .is(BUY, "not-known", &["no-repository"]);
    }
}

#[test]
fn without_git_a_run_of_one_test_is_no_base_for_those_after_others() {
    let Some(history) = History::outside_git(SHOP) else {
        return;
    };
    history.run(&[]).ends(0);
    history.edit(&[LEAK]);
    history.run(&["--", VICTIM]).ends(0);
    history.run(&[]).ends(1).is_not_acquitted(VICTIM);
}

#[test]
fn without_git_a_leak_is_not_acquitted_by_a_run_that_passed() {
    let Some(history) = History::outside_git(SHOP) else {
        return;
    };
    history.run(&[]).ends(0);
    history.edit(&[LEAK]);
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [VICTIM]);
    history.run(&[]).ends(1).is_not_acquitted(VICTIM);
}

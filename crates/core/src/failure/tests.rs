//! What makes another failure, and what does not: tables, properties, and texts that stand in stores.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::test::TestId;
use crate::trial::{Birth, Fixtures, Rung, VmId};

fn account(message: &str, text: &str) -> Account {
    Account {
        message: message.to_owned(),
        text: text.to_owned(),
        ..Account::default()
    }
}

fn frame(function: &str, text: &str) -> Frame {
    Frame {
        file: "/src/shop/cart.py".to_owned(),
        function: function.to_owned(),
        text: text.to_owned(),
    }
}

/// A failure with frames: raised by `check`, which `test_total` called.
fn raised(kind: &str, message: &str) -> Account {
    Account {
        kind: kind.to_owned(),
        frames: vec![
            frame("test_total", "cart.check()"),
            frame("Cart.check", "raise self.trouble"),
        ],
        ..account(message, "")
    }
}

fn print(account: &Account) -> Fingerprint {
    Fingerprint::of(&Outcome::Failed, account)
}

fn trial(outcome: Outcome, account: Account) -> Trial {
    Trial {
        test: TestId::new("a.py::t"),
        rung: Rung::Suite,
        vm: VmId(0),
        birth: Birth::Exec,
        before: 0,
        fixtures: Fixtures::AsInPlainRun,
        is_watched: false,
        outcome,
        duration: Duration::ZERO,
        cost: Duration::ZERO,
        account,
    }
}

/// These stand in stores. A change of one of them needs another `VERSION`.
#[test]
fn the_texts_of_fingerprints_stay_as_they_are() {
    let died = |how: &str| Outcome::VmDied {
        how: how.to_owned(),
    };
    let hung = Outcome::TimedOut {
        after: Duration::from_secs(3),
    };
    let long = "word ".repeat(100);
    let long = long.as_str();
    for (outcome, account, expected) in [
        (
            Outcome::Failed,
            account("assert 3 == 4", ""),
            "1|failed|AssertionError||assert # == #",
        ),
        (
            Outcome::Errored,
            account("decimal.InvalidOperation: bad 'x7' in /tmp/y", ""),
            "1|failed|InvalidOperation||bad '#' in #",
        ),
        (
            Outcome::Failed,
            raised("shop.Trouble", "no 'qzxw' in row 7"),
            "1|failed|Trouble|test_total:cart.check()/Cart.check:raise self.trouble|no in row",
        ),
        (
            Outcome::Failed,
            account("", "java.lang.Error\n\tat shop.A$1.lambda$b$2(A.java:3)"),
            "1|failed|Error|shop.A$.lambda$b$:|",
        ),
        (
            Outcome::Failed,
            account(&format!("ValueError: {long}"), ""),
            "1|ValueError|d33441f72b534a7e60b3eebb0f2e3a1a",
        ),
        (Outcome::Failed, account("", ""), "1|failed|||"),
        (hung, account("still running after 3s", ""), "1|timeout|"),
        (
            died("signal: 11 (SIGSEGV) (core dumped)"),
            account("its VM ended: signal: 11", ""),
            "1|crashed|signal: 11 (SIGSEGV)",
        ),
        (
            Outcome::Skipped,
            account("needs 3 cores", ""),
            "1|skipped|needs # cores",
        ),
    ] {
        let found = Fingerprint::of(&outcome, &account);
        assert_eq!(found.as_str(), expected, "{account:?}");
        assert!(found.as_str().chars().count() <= LONGEST);
    }
}

/// Vectors from the reference implementation of FNV.
#[test]
fn the_digest_is_fnv() {
    assert_eq!(fnv(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    assert_eq!(fnv(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    assert_eq!(fnv(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
}

#[test]
fn what_varies_does_not_make_another_failure() {
    for (one, other) in [
        (
            "assert 3 == 4 in <Cart at 0x7f01>",
            "assert 5 == 4 in <Cart at 0x7fff>",
        ),
        (
            "FileNotFoundError: '/data/a/x.json'",
            "FileNotFoundError: '/tmp/b/y.json'",
        ),
        ("KeyError: 'order-81f2'", "KeyError: 'order-9a07c'"),
        (
            "no reply from 127.0.0.1:40213 at 12:01:59",
            "no reply from 127.0.0.1:99 at 03:44:02",
        ),
    ] {
        let (one, other) = (account(one, ""), account(other, ""));
        assert_eq!(print(&one), print(&other), "{one:?}");
    }
    for (one, other) in [
        ("no user named qzxw1", "no user named 7ab"),
        ("no user 'anna' in ['x']", "no user 'bob' in ['y', 'z']"),
        ("row {'a': 1} is bad", "row {} is bad"),
    ] {
        let (one, other) = (raised("E", one), raised("E", other));
        assert_eq!(print(&one), print(&other), "{one:?}");
    }
}

#[test]
fn another_kind_function_source_or_message_is_another_failure() {
    let own = print(&raised("KeyError", "no user"));
    let mut function = raised("KeyError", "no user");
    function.frames[1].function = "Cart.other".to_owned();
    let mut source = raised("KeyError", "no user");
    source.frames[1].text = "raise self.other".to_owned();
    let mut fewer = raised("KeyError", "no user");
    fewer.frames.pop();
    for other in [
        raised("ValueError", "no user"),
        raised("KeyError", "no order"),
        function,
        source,
        fewer,
        account("KeyError: no user", ""),
    ] {
        assert_ne!(own, print(&other), "{other:?}");
    }
    assert_ne!(
        print(&account("AssertionError: total", "")),
        print(&account("ImportError: no module _speed", ""))
    );
}

#[test]
fn files_and_the_number_of_turns_of_a_recursion_do_not_count() {
    let own = raised("E", "x");
    let mut moved = own.clone();
    moved.frames[0].file = "/elsewhere/basket.py".to_owned();
    assert_eq!(print(&own), print(&moved));
    let mut deeper = own.clone();
    deeper.frames.push(own.frames[0].clone());
    deeper.frames.push(own.frames[1].clone());
    assert_eq!(print(&own), print(&deeper));
    let mut module = own.clone();
    module.frames[0].function = "<module>".to_owned();
    let mut other = module.clone();
    other.frames[0].file = "/src/basket.py".to_owned();
    assert_ne!(
        print(&module),
        print(&other),
        "a module is named by its file"
    );
}

#[test]
fn of_an_assert_the_values_do_not_count_and_its_words_do() {
    let assert = |message: &str| Account {
        frames: vec![frame("test_total", "assert total == 3, words")],
        kind: "AssertionError".to_owned(),
        ..account(message, "")
    };
    let own = print(&assert("assert None == 3"));
    assert_eq!(own, print(&assert("assert Total(many) == 3")));
    assert_ne!(own, print(&assert("AssertionError: too late")));
}

#[test]
fn trials_are_compared_as_far_as_both_are_known() {
    let text = |line: u32, message: &str| {
        format!("test_a.py:{line}: in test_total\n    cart.check()\nE   {message}")
    };
    let plain = account("ValueError: bad 3", "");
    let told = account("ValueError: bad 3", &text(6, "ValueError: bad 3"));
    let moved = account("ValueError: bad 4", &text(9, "ValueError: bad 4"));
    let seen = Account {
        kind: "ValueError".to_owned(),
        frames: vec![frame("Test.test_total", "cart.check()")],
        ..told.clone()
    };
    let all = [plain, told, moved, seen];
    for one in &all {
        for other in &all {
            let one = trial(Outcome::Failed, one.clone());
            let other = trial(Outcome::Errored, other.clone());
            assert!(fails_alike(&one, &other), "{one:?} {other:?}");
        }
    }
    let elsewhere = account(
        "ValueError: bad 3",
        "test_a.py:6: in test_b\n    cart.check()",
    );
    assert!(!fails_alike(
        &trial(Outcome::Failed, all[1].clone()),
        &trial(Outcome::Failed, elsewhere)
    ));
}

#[test]
fn time_outs_and_deaths_are_failures_of_their_own() {
    let died = |how: &str| Outcome::VmDied {
        how: how.to_owned(),
    };
    let hung = |seconds| Outcome::TimedOut {
        after: Duration::from_secs(seconds),
    };
    let of = |outcome: &Outcome| Fingerprint::of(outcome, &account("same", ""));
    assert_eq!(of(&hung(1)), of(&hung(20)));
    assert_eq!(of(&died("signal: 11")), of(&died("signal: 11")));
    assert_ne!(of(&died("signal: 11")), of(&died("signal: 9")));
    assert_ne!(of(&hung(1)), of(&Outcome::Failed));
    assert_ne!(of(&died("signal: 11")), of(&Outcome::Failed));
}

#[test]
fn the_report_of_another_tool_is_read_as_our_own_trial_is() {
    let text = "    def test_a():\n>       assert f() == 1\nE       assert 3 == 1\n\ntest_a.py:9: AssertionError";
    let reported = Fingerprint::of_text("", "assert 3 == 1", text);
    assert_eq!(reported, print(&account("assert 4 == 1", text)));
    assert_eq!(
        reported.as_str(),
        "1|failed|AssertionError|test_a:assert f() == 1|"
    );
    let java = Fingerprint::of_text("java.lang.AssertionError", "expected:<1> but was:<2>", "");
    let ours = print(&account(
        "java.lang.AssertionError: expected:<1> but was:<3>",
        "",
    ));
    assert_eq!(java, ours);
}

#[test]
fn a_condensed_account_has_the_same_fingerprint_without_its_text() {
    let long = "    def test_a():\n>       f()\n\ntest_a.py:9: KeyError";
    let java = "shop.Trouble: x\n\tat shop.Cart.add(Cart.java:3)";
    for (message, text) in [("boom", long), ("", java), ("ValueError: x", ""), ("", "")] {
        let whole = account(message, text);
        let mut condensed = whole.clone();
        condense(&mut condensed);
        condensed.text.clear();
        assert_eq!(print(&whole), print(&condensed), "{whole:?}");
    }
}

#[test]
fn people_read_the_summary_that_stores_have_had_all_along() {
    let known = print(&raised("AssertionError", "assert 3 == 4"));
    assert_eq!(known.summary(), "assert # == #");
    let reported = Fingerprint::of_text("E", "boom 17", "");
    assert_eq!(reported.summary(), "E: boom #");
    assert_eq!(Fingerprint::of_text("", "", "").summary(), "");
}

/// Values as they stand in messages: numbers, addresses, ids, times, paths.
fn varying() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,6}",
        "[0-9]{1,3}\\.[0-9]{1,5}(e-?[0-9]{1,2})?",
        "0x[0-9a-f]{1,16}",
        "[0-9][0-9a-f]{5,40}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?Z?",
        "(/[a-z0-9_.]{1,8}){1,4}",
        "[A-Z]:(\\\\[a-z0-9_]{1,8}){1,4}",
    ]
}

proptest! {
    #[test]
    fn numbers_paths_and_ids_never_matter(
        one in varying(),
        other in varying(),
        place in 0_usize..4,
        has_frames: bool,
    ) {
        let message = |value: &str| match place {
            0 => format!("no row {value} in the table"),
            1 => format!("no row '{value}' in the table"),
            2 => format!("<Row at {value}>: gone"),
            _ => format!("gone: ({value})"),
        };
        let of = |value: &str| {
            let message = message(value);
            if has_frames {
                print(&raised("KeyError", &message))
            } else {
                print(&account(&format!("KeyError: {message}"), ""))
            }
        };
        prop_assert_eq!(of(&one), of(&other));
    }

    #[test]
    fn kinds_and_functions_always_matter(
        one in "[A-Z][a-z]{1,90}(Error)?",
        other in "[A-Z][a-z]{1,90}(Error)?",
        message in ".{0,300}",
        function in "[a-z_]{1,9}[0-9]{0,2}",
        others in "[a-z_]{1,9}[0-9]{0,2}",
    ) {
        prop_assume!(one != other && function != others);
        let of = |kind: &str, function: &str| {
            let mut account = raised(kind, &message);
            account.frames[1].function = function.to_owned();
            print(&account)
        };
        prop_assert_ne!(of(&one, &function), of(&other, &function));
        prop_assert_ne!(of(&one, &function), of(&one, &others));
        let plain = |kind: &str| print(&account(&format!("{kind}: {message}"), ""));
        prop_assert_ne!(plain(&one), plain(&other));
    }

    #[test]
    fn any_text_has_a_short_fingerprint(kind in ".{0,90}", message in ".{0,300}", text in "(.{0,40}\n){0,5}") {
        let found = Fingerprint::of_text(&kind, &message, &text);
        prop_assert!(found.as_str().chars().count() <= LONGEST);
        prop_assert!(found.as_str().starts_with("1|"));
    }
}

#[test]
fn failures_that_come_from_the_same_place_below_their_tests_are_one_incident() {
    let frame = |function: &str, text: &str| Frame {
        file: "shop.py".to_owned(),
        function: function.to_owned(),
        text: text.to_owned(),
    };
    let account = |test: &str, kind: &str, below: &[Frame]| Account {
        message: format!("{kind}: no reply from port 4711"),
        kind: kind.to_owned(),
        frames: [&[frame(test, "shop.buy()")], below].concat(),
        ..Account::default()
    };
    let key = |account: &Account| incident(&Outcome::Failed, account);
    let below = [frame("connect", "raise Down(port)")];
    let one = account("test_a", "Down", &below);
    assert!(key(&one).is_some());
    assert_eq!(key(&one), key(&account("test_b", "Down", &below)));
    assert_ne!(key(&one), key(&account("test_b", "Late", &below)));
    let other = [frame("read", "raise Down(port)")];
    assert_ne!(key(&one), key(&account("test_b", "Down", &other)));
    assert_eq!(key(&account("test_a", "AssertionError", &[])), None);
    assert!(key(&account("test_a", "Down", &[])).is_some());
    let hang = Outcome::TimedOut {
        after: std::time::Duration::from_secs(1),
    };
    assert_eq!(incident(&hang, &one), None);
}

//! Several failing tests in one run: they share runs, and each has an answer of its own.

use super::history::{History, Way};
use super::{LEAK, SHOP, VICTIM};

#[test]
fn victims_of_one_leak_share_their_runs_and_each_has_its_own_answer() {
    let base = r#"
=== shop.py
PRICES = {"tea": 100}


def name():
    return "shop"


def reduced():
    return PRICES["tea"] * 9 // 10
=== test_shop.py
import os

import pytest
import shop


def test_reduced():
    with open(os.environ["OUTSIDE"] + "/runs", "a") as file:
        print("test_reduced", file=file)
    assert shop.reduced() == 90


@pytest.mark.parametrize("number", range(6))
def test_price(number):
    assert shop.PRICES["tea"] == 100


def test_coin():
    import coin

    assert coin.toss()
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    let leak = (
        "shop.py",
        "    return PRICES[\"tea\"] * 9 // 10",
        "    PRICES[\"tea\"] = PRICES[\"tea\"] * 9 // 10\n    return PRICES[\"tea\"]",
    );
    history.change(Way::Branch, &[leak]);
    let said = history.run(&[]);
    said.ends(1);
    for number in 0..6 {
        let test = format!("test_shop.py::test_price[{number}]");
        said.is(&test, "yours", &["fails-more"]);
        let whose = &said.finding(&test)["whose"];
        let polluters = serde_json::json!(["test_shop.py::test_reduced"]);
        assert_eq!(whose["polluters"], polluters, "{said}");
        assert!(whose["here"]["runs"].as_u64() >= Some(4), "{said}");
        assert!(whose["at_base"]["runs"].as_u64() >= Some(4), "{said}");
    }
    // The coin takes some ten pairs; the others go with them, but for their polluter and a last look.
    let runs = history.outside("runs").len();
    assert!(runs <= 90, "{runs} runs");
    if said.tests().contains(&"test_shop.py::test_coin") {
        said.is(
            "test_shop.py::test_coin",
            "not-yours",
            &["at-base", "untouched"],
        );
    }
}

#[test]
fn a_leak_is_seen_after_a_failure_that_does_not_come_again() {
    let base = format!(
        "{SHOP}{}",
        r#"
=== test_a.py
import os


def test_door():
    mark = os.environ["OUTSIDE"] + "/door"
    was_open = os.path.exists(mark)
    open(mark, "w").close()
    assert was_open
"#
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    let said = history.run(&[]);
    said.ends(1).is(VICTIM, "yours", &["fails-more"]);
    said.fails_as("test_a.py::test_door", "flaky");
}

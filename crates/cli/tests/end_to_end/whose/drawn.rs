//! Parameters that each interpreter draws anew: a `uuid4()`, the time. Their tests are known by their place.

use super::history::{History, Way};

/// An earlier test has a parameter that is another object in each interpreter, under a name that stays.
const DRAWN: &str = r#"
=== shop.py
PRICES = {"tea": 100}


def price(item):
    return PRICES[item]


def reduced(item, percent):
    return price(item) * (100 - percent) // 100
=== test_a.py
import uuid

import pytest


@pytest.mark.parametrize("own", [pytest.param(uuid.uuid4(), id="UUID"), 7])
def test_own(own):
    assert own
=== test_shop.py
import shop


def test_reduced():
    assert shop.reduced("tea", 10) == 90


def test_price():
    assert shop.price("tea") == 100
"#;

#[test]
fn a_leak_behind_a_test_whose_parameter_is_drawn_anew() {
    super::leak(super::VICTIM, DRAWN, &[super::LEAK]);
}

#[test]
fn a_test_with_a_parameter_that_is_drawn_anew_is_not_new_and_not_known() {
    let base = r#"
=== test_a.py
import uuid

import coin
import pytest
import tea


@pytest.mark.parametrize("own", [pytest.param(uuid.uuid4(), id="UUID")])
def test_own(own):
    assert tea.brew()
    assert coin.toss()
=== tea.py
def brew():
    return "tea"
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    let edit = ("tea.py", "return", "NAME = 1\n    return");
    history.change(Way::Branch, &[edit]);
    let said = history.run(&[]);
    let test = "test_a.py::test_own[UUID]";
    said.ends(1).is(test, "not-known", &["base-cannot-run"]);
    let sentence = said.finding(test)["whose"]["sentence"].to_string();
    assert!(sentence.contains("its parameters are others"), "{said}");
}

#[test]
fn a_leak_behind_a_test_whose_id_is_another_in_each_interpreter() {
    let old = "[pytest.param(uuid.uuid4(), id=\"UUID\"), 7]";
    let base = DRAWN.replace(old, "[str(uuid.uuid4()), \"tea\", time.time()]");
    let base = base.replace("import uuid\n", "import time\nimport uuid\n");
    super::leak(super::VICTIM, &base, &[super::LEAK]);
}

#[test]
fn a_polluter_whose_id_is_another_in_each_interpreter_is_named() {
    let base = r#"
=== shop.py
BASKET = []


def buy(item):
    return [item]
=== test_shop.py
import uuid

import pytest
import shop


def test_first():
    assert shop.buy("mug") == ["mug"]


@pytest.mark.parametrize("item", [str(uuid.uuid4())])
def test_buy(item):
    assert item in shop.buy(item)


def test_size():
    assert len(shop.BASKET) < 2
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    let leak = "    BASKET.append(item)\n    return BASKET";
    let first = (
        "test_shop.py",
        "assert shop.buy(\"mug\") == [\"mug\"]",
        "assert \"mug\" in shop.buy(\"mug\")",
    );
    history.change(
        Way::Branch,
        &[("shop.py", "    return [item]", leak), first],
    );
    let said = history.run(&[]);
    let victim = "test_shop.py::test_size";
    said.ends(1).is(victim, "yours", &["fails-more"]);
    let whose = &said.finding(victim)["whose"];
    let polluters = whose["polluters"].as_array().unwrap();
    let is_named = |one: &serde_json::Value| {
        let name = one.as_str().unwrap();
        name == "test_shop.py::test_first" || name.starts_with("test_shop.py::test_buy[")
    };
    assert_eq!(polluters.len(), 2, "{said}");
    assert!(polluters.iter().all(is_named), "{said}");
}

/// Interpreters in a copy of the files have another parameter, as if it was drawn: an old bug fails there, in the very
/// way of the new one.
const SAMPLED: &str = r#"
=== shop.py
def tea():
    return 1


def rust():
    return 0


def price(item):
    return tea() if item == "tea" else rust()
=== test_shop.py
import os
import pathlib

import pytest
import shop


def draw():
    here = pathlib.Path(__file__).resolve().parent
    return "tea" if here == pathlib.Path(os.environ["HOME"], "../tree").resolve() else "rust"


@pytest.mark.parametrize("item", [DRAWN])
def test_price(item):
    price = shop.price(item)
    assert price > 0
"#;

#[test]
fn an_old_bug_of_another_parameter_in_its_place_excuses_nobody() {
    for drawn in ["draw()", "pytest.param(draw(), id=\"X\")"] {
        let Some(history) = History::at(&SAMPLED.replace("DRAWN", drawn)) else {
            return;
        };
        history.change(Way::Branch, &[("shop.py", "return 1", "return 0")]);
        let said = history.run(&["--forgive", "pre-existing", "--not-known", "fail"]);
        let [test] = said.tests()[..] else {
            panic!("{said}");
        };
        assert_ne!(said.finding(test)["whose"]["answer"], "not-yours", "{said}");
        said.ends(1);
    }
}

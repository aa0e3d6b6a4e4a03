//! Changes of the product that leave state behind: a cache, a default, a registry, a singleton.

use super::history::{History, Way};
use super::{LEAK, SHOP, VICTIM, leak};

#[test]
fn a_cache_that_is_changed_in_place() {
    leak(VICTIM, SHOP, &[LEAK]);
}

#[test]
fn a_leak_is_flaky_and_only_the_true_polluter_is_named() {
    let Some(history) = History::at(SHOP) else {
        return;
    };
    history.change(Way::Branch, &[LEAK]);
    history.premise(&[VICTIM]);
    let said = history.run(&["--check-base"]);
    said.ends(1).is(VICTIM, "yours", &["fails-more"]);
    said.fails_as(VICTIM, "flaky");
    let whose = &said.finding(VICTIM)["whose"];
    let base = history.git(&["rev-parse", "origin/main"]);
    assert_eq!(whose["base"]["commit"], base.as_str(), "{said}");
    let [here, at_base] = ["here", "at_base"].map(|key| &whose[key]);
    assert_eq!(here["runs"], here["failed"], "{said}");
    assert!(at_base["runs"].as_u64().unwrap() > 0, "{said}");
    assert_eq!(at_base["failed"], 0, "{said}");
    assert_eq!(whose["changed_files"], 1, "{said}");
    assert!(whose["unknowns"].is_array(), "{said}");
    let touches = whose["touches"].to_string();
    assert!(touches.contains("shop.py"), "{said}");
    let polluters = serde_json::json!(["test_shop.py::test_reduced"]);
    assert_eq!(whose["polluters"], polluters, "{said}");
    let cause = &said.finding(VICTIM)["cause"];
    assert_eq!(cause["shown"][0]["path"], "shop.PRICES['tea']", "{said}");
    assert_eq!(cause["shown"][0]["file"], "shop.py", "{said}");
    assert!(cause["fix"].is_null(), "{said}");
}

#[test]
fn a_list_that_becomes_an_attribute_of_the_class() {
    let base = r#"
=== basket.py
class Basket:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
=== test_basket.py
from basket import Basket


def test_add():
    basket = Basket()
    basket.add("tea")
    assert basket.items[-1] == "tea"


def test_new():
    assert Basket().items == []
"#;
    let edit = (
        "basket.py",
        "    def __init__(self):\n        self.items = []",
        "    items = []",
    );
    leak("test_basket.py::test_new", base, &[edit]);
}

#[test]
fn a_default_that_can_be_changed() {
    let base = r#"
=== order.py
def ordered(item, items=None):
    items = [] if items is None else items
    items.append(item)
    return items
=== test_order.py
import order


def test_first():
    assert "tea" in order.ordered("tea")


def test_second():
    assert order.ordered("mug") == ["mug"]
"#;
    let edits = [
        ("order.py", "items=None", "items=[]"),
        (
            "order.py",
            "    items = [] if items is None else items\n",
            "",
        ),
    ];
    leak("test_order.py::test_second", base, &edits);
}

#[test]
fn a_list_that_is_given_away_without_a_copy() {
    let base = r#"
=== menu.py
DEFAULTS = ["tea"]


def menu():
    return list(DEFAULTS)
=== test_menu.py
import menu


def test_longer():
    longer = menu.menu()
    longer.append("mug")
    assert len(longer) > 1


def test_plain():
    assert menu.menu() == ["tea"]
"#;
    let edit = ("menu.py", "list(DEFAULTS)", "DEFAULTS");
    leak("test_menu.py::test_plain", base, &[edit]);
}

#[test]
fn an_entry_of_a_registry_that_is_no_longer_taken_out() {
    let base = r#"
=== plugins.py
REGISTRY = {}


class Plugin:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        REGISTRY[self.name] = self
        return self

    def __exit__(self, *_):
        REGISTRY.pop(self.name)
        return False
=== test_plugins.py
import plugins


def test_use():
    with plugins.Plugin("tax") as plugin:
        assert plugin.name == "tax"


def test_none():
    assert not plugins.REGISTRY
"#;
    let edit = (
        "plugins.py",
        "        REGISTRY.pop(self.name)\n        return False",
        "        return False",
    );
    leak("test_plugins.py::test_none", base, &[edit]);
}

#[test]
fn a_function_that_remembers_its_results() {
    let base = r#"
=== rates.py
SETTINGS = {"rate": 19}


def rate():
    return SETTINGS["rate"]
=== test_rates.py
import rates


def test_other_rate(monkeypatch):
    monkeypatch.setitem(rates.SETTINGS, "rate", 7)
    assert rates.rate() == 7


def test_rate():
    assert rates.rate() == 19
"#;
    let edits = [
        ("rates.py", "SETTINGS =", "import functools\n\nSETTINGS ="),
        (
            "rates.py",
            "def rate",
            "@functools.lru_cache(maxsize=None)\ndef rate",
        ),
    ];
    leak("test_rates.py::test_rate", base, &edits);
}

#[test]
fn a_number_that_counts_over_all_objects() {
    let base = "
=== bill.py
def bills():
    number = 0
    while True:
        number += 1
        yield number
=== test_bill.py
import bill


def test_numbers():
    numbers = bill.bills()
    assert next(numbers) < next(numbers)


def test_first():
    assert next(bill.bills()) == 1
";
    let edits = [
        ("bill.py", "def bills", "number = 0\n\n\ndef bills"),
        (
            "bill.py",
            "    number = 0\n    while",
            "    global number\n    while",
        ),
    ];
    leak("test_bill.py::test_first", base, &edits);
}

#[test]
fn a_list_that_becomes_an_iterator() {
    let base = r#"
=== colours.py
COLOURS = ["red", "green"]
=== test_colours.py
from colours import COLOURS


def test_red():
    assert "red" in list(COLOURS)


def test_green():
    assert "green" in list(COLOURS)
"#;
    let edit = (
        "colours.py",
        "[\"red\", \"green\"]",
        "iter([\"red\", \"green\"])",
    );
    leak("test_colours.py::test_green", base, &[edit]);
}

#[test]
fn a_connection_that_all_share() {
    let base = "
=== database.py
class Connection:
    def __init__(self):
        self.is_open = True

    def close(self):
        self.is_open = False


def connect():
    return Connection()
=== tests/test_close.py
import database


def test_close():
    connection = database.connect()
    connection.close()
    assert not connection.is_open
=== tests/test_open.py
import database


def test_open():
    assert database.connect().is_open
";
    let edit = (
        "database.py",
        "def connect():\n    return Connection()",
        "SHARED = Connection()\n\n\ndef connect():\n    return SHARED",
    );
    leak("tests/test_open.py::test_open", base, &[edit]);
}

#[test]
fn an_import_that_patches_a_function_of_the_standard_library() {
    let base = r#"
=== fast.py
def dumps(value):
    return "{}"
=== export.py
def export(value):
    import fast

    return fast.dumps(value)
=== test_export.py
import json

import export


def test_export():
    assert export.export({}) == "{}"


def test_json():
    assert json.dumps([1]) == "[1]"
"#;
    let edit = ("fast.py", "", "\n\nimport json\n\njson.dumps = dumps\n");
    leak("test_export.py::test_json", base, &[edit]);
}

#[test]
fn a_memo_that_outlives_its_unit_test_class() {
    let base = r#"
=== stock.py
def stock(counts, item):
    return counts[item]
=== test_stock.py
import unittest

import stock


class A(unittest.TestCase):
    def test_many(self):
        self.assertEqual(stock.stock({"tea": 5}, "tea"), 5)


class B(unittest.TestCase):
    def test_none(self):
        self.assertEqual(stock.stock({"tea": 0}, "tea"), 0)
"#;
    let edits = [
        ("stock.py", "def stock", "SEEN = {}\n\n\ndef stock"),
        (
            "stock.py",
            "return counts[item]",
            "return SEEN.setdefault(item, counts[item])",
        ),
    ];
    leak("test_stock.py::B::test_none", base, &edits);
}

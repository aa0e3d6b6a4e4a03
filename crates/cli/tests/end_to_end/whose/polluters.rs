//! Changes of tests and fixtures with which one test breaks another.

use super::history::{History, Way};
use super::{leak, leak_because};

#[test]
fn a_fixture_with_a_wider_scope() {
    let base = r#"
=== test_cart.py
import pytest


@pytest.fixture
def cart():
    return []


def test_add(cart):
    cart.append("tea")
    assert "tea" in cart


def test_empty(cart):
    assert cart == []
"#;
    let edit = (
        "test_cart.py",
        "@pytest.fixture\n",
        "@pytest.fixture(scope=\"module\")\n",
    );
    leak("test_cart.py::test_empty", base, &[edit]);
}

#[test]
fn a_fixture_of_the_whole_session() {
    let base = r#"
=== conftest.py
import pytest


@pytest.fixture
def settings():
    return {"currency": "eur"}
=== test_a.py
def test_other(settings):
    settings["currency"] = "usd"
    assert settings["currency"] == "usd"
=== test_b.py
def test_default(settings):
    assert settings["currency"] == "eur"
"#;
    let edit = (
        "conftest.py",
        "@pytest.fixture\n",
        "@pytest.fixture(scope=\"session\")\n",
    );
    leak("test_b.py::test_default", base, &[edit]);
}

#[test]
fn a_fixture_that_puts_nothing_back() {
    let base = "
=== state.py
LEVEL = 1
=== test_state.py
import pytest

import state


@pytest.fixture
def high():
    before = state.LEVEL
    state.LEVEL = 9
    yield
    state.LEVEL = before


def test_high(high):
    assert state.LEVEL == 9


def test_level():
    assert state.LEVEL == 1
";
    let edit = (
        "test_state.py",
        "    yield\n    state.LEVEL = before\n",
        "    yield\n",
    );
    leak("test_state.py::test_level", base, &[edit]);
}

#[test]
fn a_fixture_for_every_test_that_is_gone() {
    let base = r#"
=== registry.py
NAMES = []
=== conftest.py
import pytest

import registry


@pytest.fixture(autouse=True)
def clean():
    yield
    registry.NAMES.clear()
=== test_a.py
import registry


def test_name():
    registry.NAMES.append("a")
    assert registry.NAMES
=== test_b.py
import registry


def test_no_name():
    assert registry.NAMES == []
"#;
    let edit = ("conftest.py", "(autouse=True)", "");
    leak("test_b.py::test_no_name", base, &[edit]);
}

#[test]
fn a_tear_down_of_a_class_that_is_gone() {
    let base = "
=== settings.py
DEBUG = False
=== test_a.py
import unittest

import settings


class DebugTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        settings.DEBUG = True

    @classmethod
    def tearDownClass(cls):
        settings.DEBUG = False

    def test_debug(self):
        self.assertTrue(settings.DEBUG)
=== test_b.py
import settings


def test_default():
    assert not settings.DEBUG
";
    let edit = (
        "test_a.py",
        "    @classmethod\n    def tearDownClass(cls):\n        settings.DEBUG = False\n\n",
        "",
    );
    leak("test_b.py::test_default", base, &[edit]);
}

#[test]
fn a_variable_that_a_changed_test_no_longer_restores() {
    let base = r#"
=== test_variable.py
import os


def test_french(monkeypatch):
    monkeypatch.setenv("SHOP_LANGUAGE", "fr")
    assert os.environ["SHOP_LANGUAGE"] == "fr"


def test_language():
    assert os.environ.get("SHOP_LANGUAGE", "en") == "en"
"#;
    let edit = (
        "test_variable.py",
        "    monkeypatch.setenv(\"SHOP_LANGUAGE\", \"fr\")",
        "    os.environ[\"SHOP_LANGUAGE\"] = \"fr\"",
    );
    leak("test_variable.py::test_language", base, &[edit]);
}

#[test]
fn a_mock_that_is_started_and_not_stopped() {
    let base = r#"
=== post.py
def send():
    return "sent"
=== test_post.py
from unittest import mock

import post


def test_mocked():
    with mock.patch("post.send", return_value="mocked"):
        assert post.send() == "mocked"


def test_send():
    assert post.send() == "sent"
"#;
    let edit = (
        "test_post.py",
        "    with mock.patch(\"post.send\", return_value=\"mocked\"):\n        assert",
        "    mock.patch(\"post.send\", return_value=\"mocked\").start()\n    assert",
    );
    leak("test_post.py::test_send", base, &[edit]);
}

#[test]
fn a_stub_that_stays_among_the_modules() {
    let base = r#"
=== bank.py
NAME = "bank"
=== test_a.py
import sys
import types


def test_stub(monkeypatch):
    monkeypatch.setitem(sys.modules, "bank", types.ModuleType("bank"))
    import bank

    assert not hasattr(bank, "NAME")
=== test_b.py
def test_bank():
    import bank

    assert bank.NAME == "bank"
"#;
    let edit = (
        "test_a.py",
        "    monkeypatch.setitem(sys.modules, \"bank\", types.ModuleType(\"bank\"))",
        "    sys.modules[\"bank\"] = types.ModuleType(\"bank\")",
    );
    leak("test_b.py::test_bank", base, &[edit]);
}

#[test]
fn a_new_test_that_pollutes_an_old_one() {
    let base = r#"
=== rates.py
RATES = {"eur": 1}
=== test_rates.py
import rates


def test_rates():
    assert rates.RATES == {"eur": 1}
"#;
    let new = "import rates\n\n\ndef test_dollar():\n    rates.RATES['usd'] = 2\n    \
               assert len(rates.RATES) == 2\n";
    leak_because(
        "test_rates.py::test_rates",
        base,
        &[("test_dollar.py", "", new)],
        &["fails-more", "exposed"],
    );
}

#[test]
fn a_new_test_file_whose_import_pollutes_an_old_test() {
    let base = r#"
=== rates.py
RATES = {"eur": 1}
=== test_rates.py
import rates


def test_rates():
    assert rates.RATES == {"eur": 1}
"#;
    let new = "import rates\n\nrates.RATES['usd'] = 2\n\n\ndef test_dollar():\n    pass\n";
    leak_because(
        "test_rates.py::test_rates",
        base,
        &[("test_dollar.py", "", new)],
        &["fails-more", "exposed"],
    );
}

#[test]
fn a_file_that_a_changed_test_leaves_in_the_temporary_folder() {
    let base = r#"
=== test_lock.py
import pathlib
import tempfile


def lock():
    return pathlib.Path(tempfile.gettempdir()) / "shop.lock"


def test_lock():
    lock().touch()
    assert lock().exists()
    lock().unlink()


def test_free():
    assert not lock().exists()
"#;
    let edit = ("test_lock.py", "    lock().unlink()\n", "");
    leak("test_lock.py::test_free", base, &[edit]);
}

const REPORTS: &str = r#"
=== test_report.py
import pathlib

REPORT = pathlib.Path(__file__).with_name("report.txt")


def test_write():
    REPORT.write_text("sold")
    assert REPORT.exists()
    REPORT.unlink()


def test_none():
    assert not REPORT.exists()
"#;

#[test]
fn a_file_that_a_changed_test_leaves_in_the_tree() {
    let edit = ("test_report.py", "    REPORT.unlink()\n", "");
    leak("test_report.py::test_none", REPORTS, &[edit]);
}

#[test]
fn a_file_in_the_tree_that_git_ignores_is_left_no_less() {
    let base = format!("{REPORTS}=== .gitignore\n__pycache__/\n.pytest_cache/\nreport.txt\n");
    let edit = ("test_report.py", "    REPORT.unlink()\n", "");
    leak("test_report.py::test_none", &base, &[edit]);
}

#[test]
fn two_victims_of_one_leak_are_both_the_changes() {
    let base = r#"
=== state.py
LEVEL = 1
=== test_state.py
import state


def test_high(monkeypatch):
    monkeypatch.setattr(state, "LEVEL", 9)
    assert state.LEVEL == 9


def test_level():
    assert state.LEVEL == 1


def test_low():
    assert state.LEVEL < 5
"#;
    let Some(history) = History::at(base) else {
        return;
    };
    let edit = (
        "test_state.py",
        "    monkeypatch.setattr(state, \"LEVEL\", 9)",
        "    state.LEVEL = 9",
    );
    history.change(Way::Branch, &[edit]);
    let victims = ["test_state.py::test_level", "test_state.py::test_low"];
    history.premise(&victims);
    let said = history.run(&[]);
    said.ends(1);
    assert_eq!(said.tests(), victims, "{said}");
    for victim in victims {
        said.is(victim, "yours", &["fails-more"]);
    }
}

//! Changes of the product that leave the process changed: variables, folders, levels, limits.

use super::leak;

#[test]
fn a_variable_of_the_environment() {
    let base = r#"
=== mode.py
import os


def sell(price):
    variables = dict(os.environ)
    variables["SHOP_MODE"] = "sale"
    return price if variables["SHOP_MODE"] else 0


def mode():
    return os.environ.get("SHOP_MODE", "normal")
=== test_mode.py
import mode


def test_sell():
    assert mode.sell(3) == 3


def test_mode():
    assert mode.mode() == "normal"
"#;
    let edit = ("mode.py", "dict(os.environ)", "os.environ");
    leak("test_mode.py::test_mode", base, &[edit]);
}

#[test]
fn a_working_folder_that_is_not_gone_back_from() {
    let base = r#"
=== pack.py
import os


def pack(folder):
    before = os.getcwd()
    os.chdir(folder)
    names = os.listdir(".")
    os.chdir(before)
    return names
=== test_pack.py
import os

import pack


def test_pack(tmp_path):
    assert pack.pack(tmp_path) == []


def test_here():
    assert os.path.exists("pack.py")
"#;
    let edit = ("pack.py", "    os.chdir(before)\n", "");
    leak("test_pack.py::test_here", base, &[edit]);
}

#[test]
fn an_entry_of_the_module_path() {
    let base = r#"
=== load.py
import pathlib

EXTRA = pathlib.Path(__file__).parent / "extra"


def load():
    return (EXTRA / "colour.py").read_text()
=== extra/colour.py
NAME = "red"
=== colour.py
NAME = "blue"
=== test_load.py
import load


def test_load():
    assert "red" in load.load()


def test_colour():
    import colour

    assert colour.NAME == "blue"
"#;
    let edit = (
        "load.py",
        "    return (EXTRA",
        "    import sys\n\n    sys.path.insert(0, str(EXTRA))\n    return (EXTRA",
    );
    leak("test_load.py::test_colour", base, &[edit]);
}

#[test]
fn a_level_of_logging() {
    let base = r#"
=== quiet.py
import logging


def fetch():
    return "page"


def warn():
    logging.getLogger("shop").warning("sold out")
=== test_quiet.py
import quiet


def test_fetch():
    assert quiet.fetch() == "page"


def test_warn(caplog):
    quiet.warn()
    assert "sold out" in caplog.text
"#;
    let edit = (
        "quiet.py",
        "    return \"page\"",
        "    logging.disable(logging.ERROR)\n    return \"page\"",
    );
    leak("test_quiet.py::test_warn", base, &[edit]);
}

#[test]
fn a_precision_of_decimal_numbers() {
    let base = r#"
=== money.py
import decimal


def rounded(text):
    with decimal.localcontext() as context:
        context.prec = 3
        return +decimal.Decimal(text)
=== test_money.py
import decimal

import money


def test_rounded():
    assert money.rounded("1.2345") == decimal.Decimal("1.23")


def test_sum():
    assert decimal.Decimal("1000") + decimal.Decimal("0.5") == decimal.Decimal("1000.5")
"#;
    let edit = (
        "money.py",
        "    with decimal.localcontext() as context:\n        context.prec = 3\n        return",
        "    decimal.getcontext().prec = 3\n    return",
    );
    leak("test_money.py::test_sum", base, &[edit]);
}

#[test]
fn a_locale() {
    let base = r#"
=== words.py
import locale


def compare(left, right):
    return locale.strcoll(left, right)
=== test_words.py
import locale

import words

BEFORE = locale.setlocale(locale.LC_COLLATE)


def test_compare():
    assert words.compare("a", "b") < 0


def test_locale():
    assert locale.setlocale(locale.LC_COLLATE) == BEFORE
"#;
    let edit = (
        "words.py",
        "    return locale",
        "    locale.setlocale(locale.LC_COLLATE, \"C.UTF-8\")\n    return locale",
    );
    leak("test_words.py::test_locale", base, &[edit]);
}

#[test]
fn a_seed_of_the_shared_generator() {
    let base = "
=== draw.py
import random


def shuffled(items):
    generator = random.Random(1)
    return generator.sample(items, len(items))


def token():
    return random.getrandbits(256)
=== test_draw.py
import random

import draw


def test_shuffled():
    assert sorted(draw.shuffled([2, 1])) == [1, 2]


def test_token():
    known = random.Random(1)
    known.sample([2, 1], 2)
    assert draw.token() != known.getrandbits(256)
";
    let edits = [
        (
            "draw.py",
            "    generator = random.Random(1)\n",
            "    random.seed(1)\n",
        ),
        ("draw.py", "generator.sample", "random.sample"),
    ];
    leak("test_draw.py::test_token", base, &edits);
}

#[test]
fn a_clock_that_is_not_set_going_again() {
    let base = "
=== freeze.py
import time


def stamp(moment):
    real = time.time
    time.time = lambda: moment
    try:
        return int(time.time())
    finally:
        time.time = real
=== test_freeze.py
import time

import freeze


def test_stamp():
    assert freeze.stamp(5) == 5


def test_clock():
    assert time.time() > 1_000_000
";
    let edit = (
        "freeze.py",
        "    try:\n        return int(time.time())\n    finally:\n        time.time = real",
        "    return int(time.time())",
    );
    leak("test_freeze.py::test_clock", base, &[edit]);
}

#[test]
fn a_mask_for_the_rights_of_new_files() {
    let base = r#"
=== secret.py
import os


def write(path, text):
    before = os.umask(0o077)
    path.write_text(text)
    os.umask(before)
=== test_secret.py
import os

import secret


def test_write(tmp_path):
    secret.write(tmp_path / "key", "abc")


def test_folder(tmp_path):
    os.mkdir(tmp_path / "shared")
    assert (tmp_path / "shared").stat().st_mode & 0o050 == 0o050
"#;
    let edit = ("secret.py", "    os.umask(before)\n", "");
    leak("test_secret.py::test_folder", base, &[edit]);
}

#[test]
fn a_time_limit_for_new_sockets() {
    let base = "
=== ask.py
import socket


def ask():
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.gettimeout()
=== test_ask.py
import socket

import ask


def test_ask():
    assert ask.ask() == 1


def test_socket():
    with socket.socket() as connection:
        assert connection.gettimeout() is None
";
    let edit = (
        "ask.py",
        "    with socket.socket() as connection:\n        connection.settimeout(1)\n",
        "    socket.setdefaulttimeout(1)\n    with socket.socket() as connection:\n",
    );
    leak("test_ask.py::test_socket", base, &[edit]);
}

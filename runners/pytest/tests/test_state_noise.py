"""A test that changes nothing gives no pieces, whatever pytest does around it."""

import json
import os
import subprocess
import sys
from typing import Any, Dict, List

import pytest

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUGIN = f"""
import json, sys
sys.path.insert(0, {HERE!r})
import pytest

class Watch:
    found = {{}}
    state = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        from unflake_state import State
        self.state = self.state or State(item.config, [str(item.config.rootpath)])
        self.state.mark()
        yield
        pieces = self.found[item.nodeid] = self.state.compare()["pieces"]
        if item.name == "test_fixture_comes_back":
            assert self.state.restore([piece["key"] for piece in pieces]) == []

    def pytest_sessionfinish(self):
        with open("pieces.json", "w") as file:
            json.dump(self.found, file)

def pytest_configure(config):
    config.pluginmanager.register(Watch())
"""
CLEAN = '''
import logging
import os
import re
import unittest
import warnings

import pytest

log = logging.getLogger(__name__)


def test_nothing():
    pass


def test_that_fails():
    assert [1, 2, 3] == [1, 2, 4]


def test_that_raises():
    raise ValueError("no")


def test_that_is_skipped():
    pytest.skip("not today")


@pytest.mark.xfail
def test_that_is_expected_to_fail():
    assert False


def test_output(capsys):
    print("hello")
    assert capsys.readouterr().out == "hello\\n"


def test_output_of_the_system(capfd):
    os.system("echo hello")


def test_log(caplog):
    log.warning("hello")
    assert caplog.records


def test_warning():
    warnings.warn("old")
    with pytest.warns(UserWarning):
        warnings.warn("old")


def test_temporary(tmp_path, tmp_path_factory):
    (tmp_path / "file").write_text("")


def test_patches(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP", "1")
    monkeypatch.setattr(os, "sep", "/")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("number", [[1], {"a": 1}])
def test_parameters(number):
    assert re.match("[0-9]+x{3}", "123xxx")


class TestClass:
    @pytest.fixture(autouse=True)
    def around(self):
        self.value = 1
        yield

    def setup_method(self):
        self.other = 1

    def test_one(self):
        self.value = 2

    def test_two(self):
        pass


class TestOld(unittest.TestCase):
    def setUp(self):
        self.value = 1
        self.addCleanup(print)

    def test_one(self):
        self.assertEqual(self.value, 1)

    def test_fails(self):
        self.assertEqual(self.value, 2)

    def test_parts(self):
        with self.subTest("part"):
            pass


def documented():
    """
    >>> 1 + 1
    2
    """
'''
DIRTY = """
import os
import unittest

import pytest


@pytest.fixture(scope="module")
def basket():
    return []


def test_fixture_is_alive(basket):
    pass


def test_fixture_is_filled(basket):
    basket.append(1)


@pytest.fixture(scope="module")
def till():
    return [1]


@pytest.fixture(scope="module")
def receipt(till):
    return []


def test_fixture_comes_back(receipt, till):
    till.append(2)


def test_fixture_is_new(till):
    assert till == [1]
    del till[:]


class TestOld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.total = 0

    def test_one(self):
        pass

    def test_two(self):
        type(self).total += 1

    def test_two_again(self):
        pass


def test_environment():
    os.environ["SHOP"] = "1"
"""


def run(folder: Any, source: str, args: List[str], status: int) -> Dict[str, List[str]]:
    """The pieces of every test of a file, as kind and path."""
    for name in ("plugin", "temporary", "shop"):
        (folder / name).mkdir()
    (folder / "plugin" / "example_plugin.py").write_text(PLUGIN)
    (folder / "shop" / "test_shop.py").write_text(source)
    search = os.pathsep.join([str(folder / "plugin"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "TMPDIR": str(folder / "temporary"), "PYTHONPATH": search}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "example_plugin",
        "-p",
        "no:cacheprovider",
        *args,
    ]
    ended = subprocess.run(command, cwd=folder / "shop", env=environment, stdout=subprocess.DEVNULL)
    assert ended.returncode == status
    found = json.loads((folder / "shop" / "pieces.json").read_text())
    return {
        test.partition("::")[2]: [f"{piece['kind']} {piece['path']}" for piece in pieces]
        for test, pieces in found.items()
    }


@pytest.mark.parametrize("capture", ["fd", "sys", "no"])
def test_a_test_that_changes_nothing_gives_no_pieces(tmp_path: Any, capture: str) -> None:
    found = run(
        tmp_path, CLEAN, [f"--capture={capture}", "--doctest-modules", "-W", "error::ImportWarning"], status=1
    )
    assert len(found) == 19
    assert {test: pieces for test, pieces in found.items() if pieces} == {}


def test_a_test_that_changes_something_gives_that(tmp_path: Any) -> None:
    assert run(tmp_path, DIRTY, [], status=0) == {
        "test_fixture_is_alive": ["fixture fixture basket"],
        "test_fixture_is_filled": ["fixture fixture basket"],
        "test_fixture_comes_back": ["fixture fixture receipt", "fixture fixture till"],
        "test_fixture_is_new": ["fixture fixture till"],
        "TestOld::test_one": ["attribute test_shop.TestOld.total"],
        "TestOld::test_two": ["attribute test_shop.TestOld.total"],
        "TestOld::test_two_again": [],
        # The last test of the module ends the fixture.
        "test_environment": [
            "environment os.environ['SHOP']",
            "fixture fixture basket",
            "fixture fixture till",
        ],
    }

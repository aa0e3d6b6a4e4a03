"""What installed packages ask on the project's behalf is told, and packages notice nothing."""

import importlib
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
from tracing import Traced

from unflake_trace import Finder
from unflake_trace_kinds import RANDOMNESS, TIME
from unflake_trace_libraries import library_path


@pytest.fixture
def package(traced: Traced, monkeypatch: Any) -> Any:
    """Writes a module into a folder of installed packages."""
    folder = traced.folder / "lib" / "site-packages"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))

    def write(source: str, name: str = "tokens") -> None:
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


def test_a_random_value_that_a_package_draws_is_told(traced: Traced, package: Any) -> None:
    package(
        """
        import random
        import time

        def token():
            return f"{random.Random(3).randint(1, 6)}-{kept(7)}"

        def stamp():
            return time.monotonic() > 0

        def kept(number):
            return number
        """
    )
    result = traced.run("import tokens\n\ndef main():\n    return tokens.token(), tokens.stamp()\n")
    assert result == ("2-7", True)
    inside = [one for one in traced.told() if one.file.startswith("site-packages")]
    assert [(one.callee, one.kind) for one in inside] == [
        ("random.Random.randint", RANDOMNESS),
        ("time.monotonic", TIME),
    ]
    assert inside[0].value == "2"
    assert [one.callee for one in traced.told("main")] == ["tokens.token", "tokens.stamp"]


def test_what_only_has_such_a_name_is_not_told(traced: Traced, package: Any) -> None:
    package(
        """
        class Clock:
            def now(self):
                return 5

        def read():
            clock = Clock()
            return [clock.now() for _ in range(3)]
        """
    )
    assert traced.run("import tokens\n\ndef main():\n    return tokens.read()\n") == [5, 5, 5]
    assert [one.callee for one in traced.told()] == ["tokens.read"]
    assert traced.processes[0].hot == []


def test_a_package_that_raises_out_of_such_a_call_raises_as_before(traced: Traced, package: Any) -> None:
    package(
        """
        import os

        def names():
            try:
                return os.listdir("/nowhere-at-all")
            except FileNotFoundError as error:
                return type(error).__name__
        """
    )
    assert traced.run("import tokens\n\ndef main():\n    return tokens.names()\n") == "FileNotFoundError"
    inside = [one for one in traced.told() if one.file.startswith("site-packages")]
    assert [(one.callee, one.is_raised) for one in inside] == [("posix.listdir", True)]


def test_a_package_that_warns_when_it_is_compiled_does_not_warn(traced: Traced, package: Any) -> None:
    package('import time\n\nPATTERN = "\\d"\n\ndef clock():\n    return time.time()\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert traced.run("import tokens\n\ndef main():\n    return tokens.clock() > 0\n")


def test_modules_without_such_a_call_are_loaded_as_ever(traced: Traced, package: Any) -> None:
    package("def plain():\n    return 1\n")
    traced.run("import tokens\n\ndef main():\n    return tokens.plain()\n")
    code = sys.modules["tokens"].plain.__code__
    assert "@unflake_end" not in code.co_names
    assert any(isinstance(one, Finder) for one in sys.meta_path)


def test_only_installed_packages_that_are_not_for_testing_are_meant() -> None:
    root = Path("/venv/lib/python3.12/site-packages")
    assert library_path(str(root / "faker/generator.py")) == "site-packages/faker/generator.py"
    assert library_path(str(root / "_pytest/python.py")) is None
    assert library_path(str(root / "pytest.py")) is None
    assert library_path("/usr/lib/python3.12/random.py") is None
    assert library_path("/srv/scheduler-packages/turns.py") is None

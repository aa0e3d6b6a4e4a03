"""The environment of a base: what is linked, what is left out, and what counts as there before."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Optional

import pytest

import unflake_environment as environment


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_hidden_files_leave_no_folder_and_their_neighbours_stay(tmp_path: Path) -> None:
    own, rest = tmp_path / "own", tmp_path / "rest"
    for name in ["tax/__init__.py", "tax/__pycache__/x.pyc", "shared/tax.py", "shared/levy.py", "levy.py"]:
        write(own / name)
    rest.mkdir()
    hidden = {os.path.join("tax", "__init__.py"), os.path.join("shared", "tax.py")}
    environment.link(str(own), str(rest), hidden)
    found = sorted(str(path.relative_to(rest)) for path in rest.rglob("*"))
    assert found == ["levy.py", "shared", os.path.join("shared", "levy.py")]


@pytest.mark.parametrize(
    ("version", "text", "pin", "is_own", "says"),
    [
        ("1.0", "tax==1", None, False, None),
        ("2", "tax==1", None, False, "tax 2 is found in"),
        ("2", "tax>=1", None, False, "leaves open"),
        ("2", "tax>=1", "tax==2", False, None),
        ("1.5", "tax<2", None, True, None),
        ("1.5", "tax==1.*", None, False, "leaves open"),
        ("1", "tax @ https://a/tax.whl", None, False, "leaves open"),
        (None, "tax==1", None, False, "is not there"),
        (None, "tax==1; python_version < '3'", None, False, None),
    ],
)
def test_only_a_package_that_cannot_be_another_counts(
    version: Optional[str], text: str, pin: Optional[str], is_own: bool, says: Optional[str]
) -> None:
    found = None
    if version:
        folder = os.path.join(sys.prefix, "lib")
        found = (SimpleNamespace(metadata={"Version": version}), folder)
    said = environment.differs(found, text, pin, is_own)
    assert (said is None) if says is None else (said is not None and says in said)


def test_a_package_that_others_need_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def package(*needs: str) -> SimpleNamespace:
        return SimpleNamespace(requires=list(needs))

    now = {
        "shop": (package("Levy (>=1)", 'odd; extra == "odd"'), ""),
        "levy": (package("duty"), ""),
        "duty": (package(), ""),
        "odd": (package(), ""),
        "new": (package("newer"), ""),
        "newer": (package(), ""),
    }
    monkeypatch.setattr(environment, "visible", lambda: now)
    assert environment.needed_beside({"levy", "duty", "odd", "new", "newer"}) == {"levy", "duty"}

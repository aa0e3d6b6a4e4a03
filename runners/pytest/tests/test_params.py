"""Digests of parameters: the same for the same parameters, and no code of the project for it."""

import datetime
import enum
import functools
import logging
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from unflake_params import Digests


class Shape:
    def __init__(self, side: Any) -> None:
        self.side = side

    def grow(self) -> None:
        self.side *= 2

    def __repr__(self) -> str:
        raise AssertionError("code of the project ran")

    __eq__ = __hash__ = __repr__  # type: ignore[assignment]


class Slotted:
    __slots__ = ("side",)

    def __init__(self, side: Any) -> None:
        self.side = side


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def digest(*values: Any, root: str = "/project") -> Any:
    params = {f"p{place}": value for place, value in enumerate(values)}
    config = SimpleNamespace(rootpath=pathlib.Path(root))
    return Digests().of(SimpleNamespace(callspec=SimpleNamespace(params=params), config=config))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        ("a", "b"),
        (b"a", "a"),
        (1.5, 2.5),
        ("x" * 9000 + "a", "x" * 9000 + "b"),
        ([1, 2], [2, 1]),
        ([1], (1,)),
        ({1, 2}, {1, 3}),
        ({"a": 1}, {"a": 2}),
        (Shape(1), Shape(2)),
        (Shape([Shape(1)]), Shape([Shape(2)])),
        (Slotted(1), Slotted(2)),
        (Colour.RED, Colour.BLUE),
        (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
        (pathlib.Path("a"), pathlib.Path("b")),
        (ValueError(1), ValueError(2)),
        (functools.partial(print, 1), functools.partial(print, 2)),
        (Shape(1).grow, Shape(2).grow),
        (print, len),
        (Shape, Slotted),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_parameters_have_another_digest(one: Any, other: Any) -> None:
    assert digest(one) == digest(one) is not None
    assert digest(one) != digest(other)


def test_the_order_of_a_set_does_not_count() -> None:
    names = [f"n{number}" for number in range(20)]
    assert digest({*names}) == digest({*reversed(names)})
    assert digest(dict.fromkeys(names)) == digest(dict.fromkeys(reversed(names)))


def test_addresses_do_not_count() -> None:
    assert digest(object()) == digest(object())
    assert digest(iter([1])) == digest(iter([1]))


def test_what_else_was_imported_does_not_count() -> None:
    holder = Shape(logging.getLogger("unflake.params"))
    before = digest(holder)
    logging.getLogger("unflake.params.more").isEnabledFor(10)
    assert digest(holder) == before


def test_a_circle_ends() -> None:
    row: Any = [1]
    row.append(row)
    shape = Shape(row)
    row.append(shape)
    assert digest(row, shape) is not None


def test_what_cannot_be_looked_at_has_no_digest() -> None:
    assert Digests().of(SimpleNamespace(callspec=None)) is None
    assert digest("\udc80") is not None


def test_a_path_of_the_project_is_the_same_in_a_copy_of_it() -> None:
    here, there = (digest(f"{root}/data.csv", root=root) for root in ("/project", "/copy/of/it"))
    assert here == there
    assert here != digest("/elsewhere/data.csv")


def test_a_digest_is_the_same_in_every_interpreter() -> None:
    values = "{'a', 'b', 'c'}, t.Shape({'k': {'x', 'y'}}), t.Colour.RED"
    source = f"import test_params as t; print(t.digest({values}))"
    folders = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    seen = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(folders)}
        done = subprocess.run(
            [sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1

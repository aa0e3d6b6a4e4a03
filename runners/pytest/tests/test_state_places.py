"""Where a piece was written."""

import os
import sys
from typing import Any, List

import pytest
from conftest import Project

from unflake_channel import Message
from unflake_state_places import locate

SOURCE = """
import json
import os
import functools

CACHE = {}
DEEP = {"eur": {1}}
NAMES = []
RATE = 1

class Cart:
    total = 0

cart = Cart()
IDS = iter([1, 2])

@functools.lru_cache()
def rate(of):
    return of

def fill():
    CACHE["eur"] = 1  # item
    DEEP["eur"] = set()  # replaced inside
    return len(CACHE)

def outer():
    fill()
    NAMES.append("a")  # list
    json.dump({}, Sink())
    for number in range(3):
        os.environ["SHOP_PLACE"] = str(number)  # environment
    Cart.total += 1  # class
    cart.owner = "ann"  # instance
    next(IDS)  # iterator
    rate(1)  # cache
    global RATE
    RATE = 2  # global
    json.dumps = fill  # replaced
    open(os.path.join(FOLDER, "out.txt"), "w").close()  # file

class Sink:
    def write(self, text):
        SUNK.append(text)  # called by a library

SUNK = []

def through_a_library():
    json.loads("[1]", object_hook=None, parse_int=CACHE.setdefault)  # by a library

def fails():
    CACHE["eur"] = 1  # item
    raise ValueError
"""


def line_of(comment: str, source: str = SOURCE) -> int:
    return next(place for place, line in enumerate(source.split("\n"), 1) if line.endswith(f"# {comment}"))


def places(project: Project, keys: List[str], call: Any) -> List[Message]:
    project.state.mark()
    return locate(project.state, keys, call)


def test_every_piece_has_the_line_that_wrote_it_first(project: Project, monkeypatch: Any) -> None:
    import json

    monkeypatch.delenv("SHOP_PLACE", raising=False)
    shop = project.load(SOURCE)
    shop.FOLDER = str(project.folder)
    monkeypatch.setattr(json, "dumps", json.dumps)
    wanted = {
        "item:shop.CACHE['eur']": ("item", "fill"),
        "item:shop.DEEP['eur']": ("replaced inside", "fill"),
        "item:shop.NAMES": ("list", "outer"),
        "item:shop.SUNK": ("called by a library", "write"),
        "environment:os.environ['SHOP_PLACE']": ("environment", "outer"),
        "attribute:shop.Cart.total": ("class", "outer"),
        "attribute:shop.cart.owner": ("instance", "outer"),
        "iterator:shop.IDS": ("iterator", "outer"),
        "cache:shop.rate": ("cache", "outer"),
        "global:shop.RATE": ("global", "outer"),
        "replaced:json.dumps": ("replaced", "outer"),
    }
    found = places(project, list(wanted), shop.outer)
    seen = {place["key"]: (place["line"], place["function"]) for place in found}
    assert seen == {key: (line_of(comment), function) for key, (comment, function) in wanted.items()}
    assert {place["file"] for place in found} == {shop.__file__}


def test_the_keys_are_those_of_a_comparison(project: Project, monkeypatch: Any) -> None:
    import json

    monkeypatch.setenv("SHOP_PLACE", "")
    monkeypatch.setattr(json, "dumps", json.dumps)
    shop = project.load(SOURCE)
    shop.FOLDER = str(project.folder)
    keys = [piece["key"] for piece in project.changes(shop.outer)]
    project.state.restore(keys)
    assert [place["key"] for place in places(project, keys, shop.outer) if place["line"] is None] == []


def test_a_write_of_a_library_is_blamed_on_the_line_that_called_it(project: Project) -> None:
    shop = project.load(SOURCE)
    (place,) = places(project, ["item:shop.CACHE['1']"], shop.through_a_library)
    assert (place["line"], place["function"]) == (line_of("by a library"), "through_a_library")


def test_a_piece_that_does_not_change_has_no_place(project: Project) -> None:
    shop = project.load(SOURCE)
    keys = ["global:shop.RATE", "global:shop.NEVER", "item:nothing.at['all']", "folder:cwd"]
    assert [place["line"] for place in places(project, keys, shop.fill)] == [None] * 4


@pytest.fixture(scope="module")
def late() -> List[int]:
    return []


def test_a_fixture_that_comes_alive_is_placed_where_it_is_defined(project: Project, request: Any) -> None:
    (place,) = places(project, ["fixture:fixture late"], lambda: request.getfixturevalue("late"))
    assert (os.path.basename(place["file"]), place["function"]) == ("test_state_places.py", "late")


def test_the_tracer_that_was_there_is_back_also_after_an_error(project: Project) -> None:
    shop = project.load(SOURCE)
    tracer: Any = lambda *_: None  # noqa: E731
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        places(project, ["item:shop.CACHE['eur']"], shop.fails)
    except ValueError:
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is tracer


def test_looking_stops_after_a_while(project: Project, monkeypatch: Any) -> None:
    shop = project.load(
        "TABLE = [object() for _ in range(100)]\ndef spin():\n    for n in range(2000):\n        n += 1\n"
    )
    monkeypatch.setattr("unflake_state_places.SECONDS", 0.0)
    (place,) = places(project, ["item:shop.TABLE"], shop.spin)
    assert place["line"] is None
    assert os.path.exists(shop.__file__)

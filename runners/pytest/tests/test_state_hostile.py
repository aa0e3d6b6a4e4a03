"""Objects that make it hard: none of their code may run, and nothing may break."""

import sys
import time
import weakref
from typing import Any

import pytest
from conftest import Project

from unflake_state import State

HOSTILE = """
class Trap(Exception):
    pass

def spring(*args, **kwargs):
    calls.append(args)
    raise Trap("code of the project ran")

calls = []

class Hostile:
    __getattr__ = __getattribute__ = __eq__ = __ne__ = __hash__ = __repr__ = __str__ = spring
    __len__ = __iter__ = __bool__ = __getitem__ = __contains__ = __call__ = __format__ = spring
    __class__ = property(spring)
    inside = property(spring)

class HostileDict(dict):
    __getattr__ = __getattribute__ = __eq__ = __hash__ = __repr__ = spring
    __len__ = __iter__ = __getitem__ = __contains__ = keys = values = items = copy = get = spring
    __setitem__ = update = clear = pop = __delitem__ = spring

class HostileList(list):
    __getattr__ = __getattribute__ = __eq__ = __hash__ = __repr__ = spring
    __len__ = __iter__ = __getitem__ = __contains__ = copy = __setitem__ = extend = clear = spring

class HostileSet(set):
    __getattr__ = __getattribute__ = __eq__ = __hash__ = __repr__ = spring
    __len__ = __iter__ = __contains__ = copy = update = clear = __sub__ = spring

class HostileType(type):
    __getattr__ = __getattribute__ = __eq__ = __hash__ = __repr__ = __call__ = spring
    __iter__ = __len__ = __instancecheck__ = __subclasscheck__ = __setattr__ = spring

class Strange(metaclass=HostileType):
    total = 0

class Hidden:
    @property
    def __dict__(self):
        spring()

class Key:
    def __init__(self, number): object.__setattr__(self, "number", number)
    def __hash__(self): return spring() if armed else 1
    def __eq__(self, other): return spring() if armed else self is other

armed = False
"""


def hostile(project: Project, more: str) -> Any:
    return project.load(HOSTILE + more)


def test_no_code_of_a_hostile_object_runs(project: Project) -> None:
    shop = hostile(project, "thing = Hostile()\n")
    inside = object.__getattribute__(shop.thing, "__dict__")
    inside["total"] = 0
    project.check(lambda: inside.update(total=1), "attribute", "shop.thing.total", "0", "1")
    project.check(lambda: setattr(shop, "thing", 5), "global", "shop.thing", "<Hostile>", "5")
    assert shop.calls == []


def test_no_code_of_a_hostile_dictionary_runs(project: Project) -> None:
    shop = hostile(project, "thing = HostileDict(eur=1)\n")
    change = lambda: dict.__setitem__(shop.thing, "eur", 2)  # noqa: E731
    project.check(change, "item", "shop.thing['eur']", "1", "2")
    assert shop.calls == []


def test_no_code_of_a_hostile_list_runs(project: Project) -> None:
    shop = hostile(project, "thing = HostileList([1])\n")
    project.check(lambda: list.append(shop.thing, 2), "item", "shop.thing", "[1]", "[1, 2]")
    assert shop.calls == []


def test_no_code_of_a_hostile_set_runs(project: Project) -> None:
    shop = hostile(project, "thing = HostileSet([1])\n")
    project.check(lambda: set.add(shop.thing, 2), "item", "shop.thing", "{1}", "{1, 2}")
    assert shop.calls == []


def test_no_code_of_a_hostile_metaclass_runs(project: Project) -> None:
    shop = hostile(project, "thing = type.__call__(Strange)\n")
    change = lambda: type.__setattr__(shop.Strange, "total", 1)  # noqa: E731
    project.check(change, "attribute", "shop.Strange.total", "0", "1")
    assert shop.calls == []


def test_keys_with_a_hash_of_their_own(project: Project) -> None:
    shop = hostile(project, "first, second = Key(1), Key(2)\ntable = {first: 1}\nkeys = {first}\n")

    def change() -> None:
        shop.armed = False
        shop.table[shop.second] = 2
        shop.keys.add(shop.second)
        shop.armed = True

    pieces = project.changes(change)
    assert [(piece["kind"], piece["path"]) for piece in pieces] == [
        ("global", "shop.armed"),
        ("item", "shop.table"),
        ("item", "shop.keys"),
    ]
    assert project.state.restore([piece["key"] for piece in pieces[1:]]) == []
    assert shop.calls == []
    shop.armed = False
    assert len(shop.table) == len(shop.keys) == 1


def test_an_overridden_dict_is_gone_round(project: Project) -> None:
    shop = hostile(
        project, "class Open: pass\nclass Closed(Open, Hidden): pass\nthing = Closed()\nhidden = Hidden()\n"
    )
    project.state.mark()
    shop.thing.total = 1
    (piece,) = project.compare()
    assert (piece["path"], piece["after"]) == ("shop.thing.total", "1")
    assert shop.calls == []


def test_what_cannot_be_looked_into_is_said(project: Project) -> None:
    hostile(project, "hidden = Hidden()\n")
    unseen = project.state.mark()["unseen"]
    assert any("shop.Hidden" in text for text in unseen)


def test_a_lazy_module_is_not_asked(project: Project) -> None:
    shop = project.load(
        "calls = []\ndef __getattr__(name):\n    calls.append(name)\n    raise AttributeError(name)\n"
    )
    assert project.changes(lambda: None) == []
    assert shop.calls == []


def test_weak_references_and_proxies_are_left_alone(project: Project) -> None:
    shop = hostile(project, "import weakref\nclass Plain: pass\nplain = Plain()\nref = weakref.ref(plain)\n")
    shop.proxy = weakref.proxy(shop.plain)
    project.check(lambda: setattr(shop.plain, "total", 1), "attribute", "shop.plain.total", None, "1")


def test_something_in_sys_modules_that_is_no_module(project: Project, monkeypatch: Any) -> None:
    shop = hostile(project, "thing = Hostile()\n")
    monkeypatch.setitem(sys.modules, "strange", shop.thing)
    assert project.changes(lambda: None) == []
    assert shop.calls == []


def test_structures_that_contain_themselves(project: Project) -> None:
    shop = project.load("ring = []\nring.append(ring)\ntable = {}\ntable['self'] = table\n")
    project.check(lambda: shop.table.update(a=1), "item", "shop.table['a']", None, "1")
    (piece,) = project.changes(lambda: shop.ring.append(1))
    assert piece["path"] == "shop.ring"


def test_a_very_deep_structure(project: Project) -> None:
    shop = project.load("deep = []\nfor _ in range(5000):\n    deep = [deep]\n")
    project.check(
        lambda: shop.deep[0].append(1),
        "item",
        "shop.deep[0]",
        "[[[<list of 1 element>]]]",
        "[[[<list of 1 element>]], 1]",
    )


def test_the_bottom_of_a_very_deep_structure(project: Project) -> None:
    shop = project.load("bottom = deep = []\nfor _ in range(5000):\n    deep = [deep]\ndel bottom\n")
    bottom = shop.deep
    while bottom:
        bottom = bottom[0]
    (piece,) = project.changes(lambda: bottom.append(1))
    assert piece["path"] == "shop.deep" + "[0]" * 5000


def test_large_arrays_are_said_and_not_copied(project: Project) -> None:
    pytest.importorskip("numpy")
    project.load("import numpy\nlarge = numpy.zeros(10_000_000)\n")
    unseen = project.state.mark()["unseen"]
    assert any("ndarray" in text and "large" in text for text in unseen)


def test_a_large_dictionary_is_quick(project: Project) -> None:
    shop = project.load("table = {number: str(number) for number in range(100_000)}")
    project.state.mark()
    shop.table[7] = "changed"
    start = time.perf_counter()
    (piece,) = project.compare()
    assert (piece["path"], piece["before"], piece["after"]) == ("shop.table[7]", "'7'", "'changed'")
    assert time.perf_counter() - start < 2


def test_a_huge_heap_is_cut_off_and_said(project: Project, request: Any) -> None:
    project.load("table = [[number] for number in range(50_000)]\nsmall = {}")
    state = State(request.config, [str(project.folder)], files=False, objects=1000)
    marked = state.mark()
    assert any("shop" in text and "too many" in text for text in marked["unseen"])
    sys.modules["shop"].small["a"] = 1
    assert [piece["path"] for piece in state.compare()["pieces"]] == ["shop.small['a']"]


def test_the_clock_is_kept(project: Project, request: Any) -> None:
    project.load("table = [[number] for number in range(200_000)]")
    state = State(request.config, [str(project.folder)], files=False, seconds=0.05)
    assert state.mark()["unseen"] != []


def test_a_busy_machine_does_not_decide_what_is_seen(project: Project, monkeypatch: Any) -> None:
    shop = project.load("table = [[number] for number in range(20_000)]")
    monkeypatch.setattr("unflake_state.perf_counter", lambda: -1e9)
    assert not any("out of time" in text for text in project.state.mark()["unseen"])
    shop.table[7].append(8)
    assert [piece["path"] for piece in project.compare()] == ["shop.table[7]"]


@pytest.mark.parametrize("text", ["a" * 5000, "\udc80", "\n\x00"])
def test_texts_are_short_and_can_travel(project: Project, text: str) -> None:
    shop = project.load("name = None")
    (piece,) = project.changes(lambda: setattr(shop, "name", text))
    assert len(piece["after"]) <= 200
    piece["after"].encode("utf-8")

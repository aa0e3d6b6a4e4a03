"""What the project's own objects hold, and other people's modules."""

import json
import json.encoder
import random
import sys
import unittest.mock
from typing import Any

import pytest
from conftest import Project


def test_nothing_is_reported_if_nothing_changed(project: Project) -> None:
    project.load("CACHE = {'eur': [1, 2]}\nclass Cart:\n    items = []\n")
    assert project.changes(lambda: None) == []


def test_a_global_that_was_set(project: Project) -> None:
    shop = project.load("RATE = 1")
    project.check(lambda: setattr(shop, "RATE", 2), "global", "shop.RATE", "1", "2")


def test_a_global_that_is_new(project: Project) -> None:
    shop = project.load("")
    project.check(lambda: setattr(shop, "RATE", 2), "global", "shop.RATE", None, "2")


def test_a_global_that_is_gone(project: Project) -> None:
    shop = project.load("RATE = 1")
    project.check(lambda: delattr(shop, "RATE"), "global", "shop.RATE", "1", None)


def test_a_value_that_was_replaced_by_an_equal_one_is_no_change(project: Project) -> None:
    shop = project.load("RATE = 1000\nNAMES = ['a', 'b']\n")

    def change() -> None:
        shop.RATE, shop.NAMES = int("1000"), ["a", "b"]

    assert project.changes(change) == []


@pytest.mark.parametrize("kind", ["dict", "__import__('collections').OrderedDict", "type('D', (dict,), {})"])
def test_an_entry_of_a_dictionary(project: Project, kind: str) -> None:
    shop = project.load(f"CACHE = {kind}(eur=1, usd=2)")
    project.check(lambda: shop.CACHE.update(eur=5), "item", "shop.CACHE['eur']", "1", "5")
    project.check(lambda: shop.CACHE.pop("usd"), "item", "shop.CACHE['usd']", "2", None)
    project.check(lambda: shop.CACHE.update(gbp=3), "item", "shop.CACHE['gbp']", None, "3")


def test_a_default_dictionary_that_grew_by_a_look(project: Project) -> None:
    shop = project.load("from collections import defaultdict\nCOUNTS = defaultdict(int)")
    project.check(lambda: shop.COUNTS["a"], "item", "shop.COUNTS['a']", None, "0")


def test_many_entries_are_one_piece(project: Project) -> None:
    shop = project.load("CACHE = {'a': 1, 'b': 2, 'c': 3}")
    fill = dict.fromkeys(range(1201))
    project.check(lambda: shop.CACHE.update(fill), "item", "shop.CACHE", "3 keys", "1,204 keys")


def test_a_list_that_grew(project: Project) -> None:
    shop = project.load("NAMES = ['a']")
    project.check(lambda: shop.NAMES.append("b"), "item", "shop.NAMES", "['a']", "['a', 'b']")


def test_an_element_of_a_list(project: Project) -> None:
    shop = project.load("NAMES = ['a', 'b']")
    project.check(lambda: shop.NAMES.__setitem__(1, "c"), "item", "shop.NAMES[1]", "'b'", "'c'")


def test_a_deque(project: Project) -> None:
    shop = project.load("from collections import deque\nQUEUE = deque([1, 2], maxlen=5)")
    project.check(lambda: shop.QUEUE.popleft(), "item", "shop.QUEUE", "[1, 2]", "[2]")


def test_a_set(project: Project) -> None:
    shop = project.load("SEEN = {1}")
    project.check(lambda: shop.SEEN.add(2), "item", "shop.SEEN", "{1}", "{1, 2}")


def test_an_attribute_of_an_instance(project: Project) -> None:
    shop = project.load("class Cart:\n    def __init__(self): self.total = 0\ncart = Cart()")
    project.check(lambda: setattr(shop.cart, "total", 9), "attribute", "shop.cart.total", "0", "9")


def test_a_slot_of_an_instance(project: Project) -> None:
    shop = project.load("class Cart:\n    __slots__ = ('total', 'owner')\ncart = Cart()\ncart.total = 0")
    project.check(lambda: setattr(shop.cart, "total", 9), "attribute", "shop.cart.total", "0", "9")
    project.check(lambda: setattr(shop.cart, "owner", 9), "attribute", "shop.cart.owner", None, "9")


def test_an_attribute_of_a_class(project: Project) -> None:
    shop = project.load("class Cart:\n    total = 0")
    project.check(lambda: setattr(shop.Cart, "total", 9), "attribute", "shop.Cart.total", "0", "9")
    project.check(lambda: setattr(shop.Cart, "extra", 9), "attribute", "shop.Cart.extra", None, "9")


def test_a_default_argument_that_was_filled(project: Project) -> None:
    shop = project.load("def add(item, basket=[]):\n    basket.append(item)")
    project.check(lambda: shop.add(1), "item", "shop.add(basket=…)", "[]", "[1]")


def test_a_variable_of_a_closure(project: Project) -> None:
    shop = project.load(
        "def make():\n    count = 0\n    def step():\n        nonlocal count\n        count += 1\n"
        "    return step\nstep = make()"
    )
    project.check(lambda: shop.step(), "attribute", "shop.step.<closure>.count", "0", "1")


def test_an_attribute_of_a_function(project: Project) -> None:
    shop = project.load("def step():\n    step.calls += 1\nstep.calls = 0")
    project.check(lambda: shop.step(), "attribute", "shop.step.calls", "0", "1")


def test_what_is_deep_inside_has_its_whole_path(project: Project) -> None:
    shop = project.load("class Cart: pass\ncart = Cart()\ncart.lines = [({'price': {'eur': 1}},)]")
    path = "shop.cart.lines[0][0]['price']['eur']"
    project.check(lambda: shop.cart.lines[0][0]["price"].update(eur=2), "item", path, "1", "2")


def test_a_thing_that_two_modules_hold_is_reported_where_it_was_made(project: Project) -> None:
    shop = project.load("CACHE = {}")
    project.load("from shop import CACHE", "a_user")
    project.check(lambda: shop.CACHE.update(eur=1), "item", "shop.CACHE['eur']", None, "1")


def test_a_project_that_is_a_plugin_of_pytest_is_looked_into(project: Project) -> None:
    plugin = project.load("class Box: pass\nbox = Box()\n", "pytest_shop")
    change = lambda: setattr(plugin.box, "total", 1)  # noqa: E731
    project.check(change, "attribute", "pytest_shop.box.total", None, "1")


def test_what_changed_inside_a_thing_that_was_replaced_comes_back_with_it(project: Project) -> None:
    shop = project.load("CACHE = {'eur': 1}")
    old = shop.CACHE

    def change() -> None:
        old["eur"] = 2
        shop.CACHE = {"usd": 3}

    project.check(change, "global", "shop.CACHE", "{'eur': 2}", "{'usd': 3}")
    assert shop.CACHE is old
    assert old == {"eur": 1}


def test_a_function_of_the_project_that_is_a_mock_now(project: Project) -> None:
    shop = project.load("def pay(): pass")
    change = unittest.mock.patch.object(shop, "pay").start
    piece = project.check(
        change, "replaced", "shop.pay", "<function shop.pay>", "<MagicMock of unittest.mock>"
    )
    unittest.mock.patch.stopall()
    assert piece["mock"]


def test_a_function_of_another_module_that_was_replaced(project: Project) -> None:
    original = json.dumps
    piece = project.check(
        unittest.mock.patch("json.dumps").start,
        "replaced",
        "json.dumps",
        "<function json.dumps>",
        "<MagicMock of unittest.mock>",
    )
    assert (piece["owner"], piece["mock"]) == ("json", True)
    assert json.dumps is original
    unittest.mock.patch.stopall()


def test_a_method_of_another_class_that_was_replaced(project: Project) -> None:
    project.load("def flat(self, o): return []")
    piece = project.check(
        lambda: setattr(json.JSONEncoder, "default", sys.modules["shop"].flat),
        "replaced",
        "json.encoder.JSONEncoder.default",
        "<function json.encoder.JSONEncoder.default>",
        "<function shop.flat>",
    )
    assert (piece["owner"], piece["mock"]) == ("json.encoder.JSONEncoder", False)


def test_a_registry_of_another_module(project: Project) -> None:
    before = json.encoder.ESCAPE_DCT["\n"]
    change: Any = lambda: json.encoder.ESCAPE_DCT.update({"\n": "?"})  # noqa: E731
    project.check(change, "item", "json.encoder.ESCAPE_DCT['\\n']", repr(before), "'?'")


def test_a_cache_is_emptied(project: Project) -> None:
    shop = project.load("from functools import lru_cache\n@lru_cache()\ndef rate(of): return of")
    shop.rate("eur")
    project.check(lambda: shop.rate("usd"), "cache", "shop.rate", "1 cached result", "2 cached results")
    assert shop.rate.cache_info().currsize == 0


def test_a_cached_method_is_found_in_its_class(project: Project) -> None:
    shop = project.load(
        "from functools import lru_cache\n"
        "class Cart:\n    @staticmethod\n    @lru_cache()\n    def rate(of): return of"
    )
    change = lambda: shop.Cart.rate("usd")  # noqa: E731
    project.check(change, "cache", "shop.Cart.rate", "0 cached results", "1 cached result")


def test_an_iterator_goes_back(project: Project) -> None:
    shop = project.load("IDS = iter([7, 8, 9])")
    project.check(lambda: next(shop.IDS), "iterator", "shop.IDS", "0 elements taken", "1 element taken")
    assert list(shop.IDS) == [7, 8, 9]


def test_an_iterator_that_is_used_up_is_made_anew(project: Project) -> None:
    shop = project.load("IDS = iter([7, 8, 9])")
    project.check(lambda: list(shop.IDS), "iterator", "shop.IDS", "0 elements taken", "used up")
    assert list(shop.IDS) == [7, 8, 9]


def test_a_counter_goes_back(project: Project) -> None:
    shop = project.load("import itertools\nclass Order:\n    ids = itertools.count(5)")
    project.check(lambda: next(shop.Order.ids), "iterator", "shop.Order.ids", "count(5)", "count(6)")
    assert next(shop.Order.ids) == 5


@pytest.mark.parametrize("start", [1, 2**70])
def test_an_iterator_over_numbers_is_made_anew(project: Project, start: int) -> None:
    shop = project.load(f"IDS = iter(range({start}, {start} + 3))\nnext(IDS)\n")
    project.check(lambda: list(shop.IDS), "iterator", "shop.IDS", "2 elements left", "used up")
    assert next(shop.IDS) == start + 1


def test_an_iterator_inside_another_is_found(project: Project) -> None:
    shop = project.load("PAIRS = zip([1, 2], [3, 4])")
    paths = {piece["path"] for piece in project.changes(lambda: next(shop.PAIRS))}
    assert len(paths) == 2
    assert all(path.startswith("shop.PAIRS") for path in paths)


def test_a_generator_is_a_suspect(project: Project) -> None:
    shop = project.load("def make():\n    yield 1\n    yield 2\nids = make()")
    (piece,) = project.changes(lambda: list(shop.ids))
    assert (piece["kind"], piece["path"], piece["after"]) == ("iterator", "shop.ids", "used up")
    assert piece["before"] == "not begun"
    assert not piece["restorable"]
    assert project.state.restore([piece["key"]]) == [piece["key"]]


def test_a_random_generator_of_the_project(project: Project) -> None:
    shop = project.load(
        "import random\nclass Dice:\n    def __init__(self): self.random = random.Random(1)\ndice = Dice()"
    )
    expected = random.Random(1).random()
    (piece,) = project.changes(shop.dice.random.random)
    assert (piece["kind"], piece["path"]) == ("random", "shop.dice.random")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    assert shop.dice.random.random() == expected


def test_bytes_and_arrays(project: Project) -> None:
    shop = project.load("import array\nDATA = bytearray(b'abc')\nNUMBERS = array.array('i', [1, 2])")
    project.check(lambda: shop.DATA.extend(b"d"), "item", "shop.DATA", "b'abc'", "b'abcd'")
    (piece,) = project.changes(lambda: shop.NUMBERS.append(3))
    assert project.state.restore([piece["key"]]) == []
    assert list(shop.NUMBERS) == [1, 2]


def test_a_stream_in_memory(project: Project) -> None:
    shop = project.load("import io\nLOG = io.StringIO('ab')")
    project.check(lambda: shop.LOG.read(1), "stream", "shop.LOG", "at 0 of 'ab'", "at 1 of 'ab'")


def test_a_lock_that_is_held(project: Project) -> None:
    shop = project.load("import threading\nLOCK = threading.Lock()")
    project.check(lambda: shop.LOCK.acquire(), "lock", "shop.LOCK", "free", "held")


def test_an_array_of_numpy(project: Project) -> None:
    pytest.importorskip("numpy")
    shop = project.load("import numpy\nGRID = numpy.zeros((2, 2))")
    change = lambda: shop.GRID.__setitem__((0, 1), 5)  # noqa: E731
    project.check(change, "item", "shop.GRID", "[[0.0, 0.0], [0.0, 0.0]]", "[[0.0, 5.0], [0.0, 0.0]]")


def test_generators_of_numpy(project: Project) -> None:
    numpy = pytest.importorskip("numpy")
    shop = project.load("import numpy\nRNG = numpy.random.default_rng(1)\nOLD = numpy.random.RandomState(1)")
    expected = numpy.random.default_rng(1).random(), numpy.random.RandomState(1).rand()
    pieces = project.changes(lambda: (shop.RNG.random(), shop.OLD.rand()))
    assert [(piece["kind"], piece["path"]) for piece in pieces] == [
        ("random", "shop.RNG"),
        ("random", "shop.OLD"),
    ]
    assert project.state.restore([piece["key"] for piece in pieces]) == []
    assert project.compare() == []
    assert (shop.RNG.random(), shop.OLD.rand()) == expected


@pytest.fixture(scope="module")
def basket() -> Any:
    return {"items": []}


def test_what_a_wide_fixture_holds(project: Project, basket: Any) -> None:
    project.check(lambda: basket["items"].append(1), "fixture", "fixture basket['items']", "[]", "[1]")


@pytest.mark.parametrize("names", [iter(["a", "b"])])
def test_a_parameter_that_is_used_up(project: Project, names: Any, request: Any) -> None:
    path = f"parameter names of {request.node.nodeid}"
    project.check(lambda: list(names), "iterator", path, "0 elements taken", "used up")
    assert list(request.node.callspec.params["names"]) == ["a", "b"]

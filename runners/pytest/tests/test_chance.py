"""What is said of random generators, and what a copy of a VM does with them."""

import random
from typing import Any, Iterator

import pytest

from unflake_chance import Chance, numpy_state


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    state = random.getstate()
    yield
    random.setstate(state)


def test_a_generator_that_nobody_seeded_has_no_digest() -> None:
    chance = Chance(is_untouched=True)
    assert chance.digests()["random"] is None
    for _ in range(2000):
        random.random()
    assert chance.digests()["random"] is None


def test_two_that_were_seeded_alike_have_the_same_digest() -> None:
    first, second = Chance(is_untouched=True), Chance(is_untouched=False)
    random.seed(7)
    seen = first.digests()["random"]
    random.seed(8)
    assert first.digests()["random"] != seen
    random.seed(7)
    assert second.digests()["random"] == seen is not None


def test_what_was_used_before_the_runner_came_may_be_seeded() -> None:
    assert Chance(is_untouched=False).digests()["random"] is not None


def test_a_copy_keeps_a_seeded_generator_and_draws_anew_from_another() -> None:
    chance = Chance(is_untouched=True)
    random.seed(7)
    expected = random.random()
    random.seed(7)
    chance.keep()
    random.seed()  # So does Python in a fork.
    chance.settle([])
    assert random.random() == expected
    random.seed(7)
    chance.keep()
    chance.settle(["random"])
    assert random.random() != expected


def test_a_branch_keeps_what_a_test_has_seeded() -> None:
    chance = Chance(is_untouched=True)
    chance.keep()
    chance.settle(["random"])
    drawn = random.random()
    chance.keep()
    state = random.getstate()
    chance.settle(["random"], is_branch=True)
    assert random.getstate() != state, "only drawn from"
    random.seed(drawn)
    state = random.getstate()
    chance.keep()
    chance.settle(["random"], is_branch=True)
    assert random.getstate() == state


def test_numpy_is_asked_only_where_it_is_loaded() -> None:
    numpy: Any = pytest.importorskip("numpy")
    chance = Chance(is_untouched=True)
    before = numpy.random.get_state()
    try:
        numpy.random.seed(7)
        seen = chance.digests()["numpy"]
        assert chance.digests()["numpy"] == seen is not None
        chance.keep()
        chance.settle(["numpy"])
        assert chance.digests()["numpy"] is None, "it was just drawn"
        numpy.random.random(1000)
        state = numpy_state()
        chance.settle(["numpy"], is_branch=True)
        assert (numpy_state()[1] != state[1]).any()
        numpy.random.seed(7)
        chance.settle(["numpy"], is_branch=True)
        assert chance.digests()["numpy"] == seen
    finally:
        numpy.random.set_state(before)

"""The random generators that all tests of a VM share: how they stand, and what a copy does with them.

A generator that the project seeded gives every run the same numbers, and tests may rest on them. One
that nobody seeded gives each run others, and so must it give each copy others. Which is which is the
driver's to say, by what several VMs tell of theirs (`docs/protocol.md`).
"""

import binascii
import sys
from random import Random, getstate, seed, setstate
from typing import Any, Dict, List, Optional, Tuple

# The number of words that a Mersenne Twister makes at once, and the most times that its state is followed.
WORDS, TWISTS = 624, 64


class Chance:
    """The generators of `random` and `numpy.random`."""

    def __init__(self, is_untouched: bool) -> None:
        """`is_untouched`: nobody can have used `random` before."""
        self._origins: Dict[str, Any] = {"random": getstate()} if is_untouched else {}
        self._kept: Any = None

    def digests(self) -> Dict[str, Optional[str]]:
        """A digest of the state of each generator; `None` where nobody has seeded it."""
        states = {"random": digest(repr(getstate()).encode())}
        numpy = numpy_state()
        if numpy is not None:
            states["numpy"] = digest(repr(numpy[:1] + numpy[2:]).encode() + numpy[1].tobytes())
        return {name: None if self._is_drawn_only(name) else state for name, state in states.items()}

    def keep(self) -> None:
        """Python gives a copy another state of `random`; tests may rest on the one that they set."""
        self._kept = getstate()

    def settle(self, redraw: List[str], is_branch: bool = False) -> None:
        """Sets the generators of a copy at its start: some draw anew, all others are as they were.

        In a copy of a copy tests have run: generators that they have seeded stay as they are.
        """
        redraw = [name for name in redraw if not is_branch or self._is_drawn_only(name, self._kept)]
        if "random" in redraw:
            seed()
            self._origins["random"] = getstate()
        else:
            setstate(self._kept)
        if "numpy" in redraw and numpy_state() is not None:
            sys.modules["numpy.random"].seed()
            self._origins["numpy"] = numpy_state()

    def _is_drawn_only(self, name: str, state: Any = None) -> bool:
        """Whether a generator is as it began, except for the numbers that were drawn from it."""
        origin = self._origins.get(name)
        if origin is None:
            return False
        if name == "random":
            return follows(origin, (state or getstate())[1][:-1])
        now = numpy_state()
        return now is not None and numpy_follows(origin, now)


def follows(origin: Any, words: Tuple[int, ...]) -> bool:
    """Whether drawing from a state leads to these words."""
    generator = Random()
    generator.setstate(origin)
    for _ in range(TWISTS):
        if generator.getstate()[1][:-1] == words:
            return True
        generator.getrandbits(32 * WORDS)
    return False


def numpy_state() -> Any:
    """The state of numpy's generator as a tuple; `None` if it is not loaded, or is of another kind."""
    module: Any = sys.modules.get("numpy.random")
    try:
        state = module.get_state(legacy=False)
        inner = state["state"]
        return (state["bit_generator"], inner["key"], inner["pos"], state["has_gauss"], state["gauss"])
    except Exception:  # Not loaded, older than 1.17, or with a generator of the project's own.
        return None


def numpy_follows(origin: Any, now: Any) -> bool:
    generator = sys.modules["numpy.random"].RandomState()
    generator.set_state(origin)
    for _ in range(TWISTS):
        if (generator.get_state()[1] == now[1]).all():
            return True
        generator.bytes(4 * WORDS)
    return False


def digest(data: bytes) -> str:
    return f"{binascii.crc32(data):08x}"

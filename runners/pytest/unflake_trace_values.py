"""Turns what calls return into numbers: bounded texts that are the same for the same value in every run.

Nothing of the project's runs: values are read past whatever their classes say they are.
"""

import os
import re
import sys
import tempfile
from itertools import count, islice
from typing import Any, Callable, Dict, List

from unflake_state_values import (
    CONTAINER_IDS,
    HEAP_TYPE,
    class_dict,
    class_flags,
    class_name,
    cut,
    len_of,
    module_of,
    write,
)

VALUE_LIMIT, ITEM_LIMIT = 120, 12
# Whole numbers between are written as such, and not as texts.
SMALLEST, LARGEST = -(1 << 60), 1 << 60
# The most texts that are remembered; then all are forgotten, and written again.
KNOWN_LIMIT = 50_000
ADDRESS = re.compile(r"0x[0-9a-fA-F]{5,}")
ARGUMENTS = vars(BaseException)["args"].__get__


class Values:
    """The texts of one trace, by numbers.

    A code stands for a value: 0 for nothing, an odd one for the whole number that is half of it, and an
    even one for the text whose number + 1 is half of it.
    """

    def __init__(self, folder: str, put: Callable[[int, str], None]) -> None:
        self._put = put
        self._numbers = count()
        self._texts: Dict[str, int] = {}
        # Of short `str`, and of types whose values all read the same, by their addresses.
        self.strings: Dict[str, int] = {}
        self.fixed: Dict[int, int] = {}
        self._kept: List[type] = []
        # These differ between runs, and say nothing.
        places = [(os.path.realpath(tempfile.gettempdir()), "<tmp>"), (folder, "<project>")]
        self._places = sorted(places, key=lambda place: -len(place[0]))

    def number(self, text: str) -> int:
        """The number of a text."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= KNOWN_LIMIT:
                self._texts.clear()
            known = next(self._numbers)
            self._put(known, text)
            self._texts[text] = known
        return known

    def code(self, text: str) -> int:
        return (self.number(text) + 1) * 2

    def string(self, value: str) -> int:
        """The code of a `str`."""
        if len(value) > VALUE_LIMIT:
            # An end that differs is seen by the length only.
            value = value[:VALUE_LIMIT]
            return self.code(self._clean(repr(value)))
        if len(self.strings) >= KNOWN_LIMIT:
            self.strings.clear()
        code = self.strings[value] = self.code(self._clean(repr(value)))
        return code

    def other(self, kind: type, value: Any) -> int:
        """The code of anything else."""
        if kind is int and SMALLEST < value < LARGEST:
            return int(value * 2 + 1)
        if kind is float:
            return self.code(repr(value))
        if id(kind) in CONTAINER_IDS:
            return self.code(self._clean(self._container(kind, value, 2)))
        try:
            text = write(value, 1)
        except Exception:  # Another thread changes it meanwhile.
            text = f"<{class_name(kind)}>"
        code = self.code(self._clean(text))
        if text == f"<{class_name(kind)}>" and len_of(value) is None and is_lasting(kind):
            self._kept.append(kind)
            self.fixed[id(kind)] = code
        return code

    def order(self, value: Any) -> int:
        """The code of a set's elements in the order in which they come now."""
        try:
            texts = [self._part(one, 0) for one in list(islice(value, ITEM_LIMIT))]
        except RuntimeError:  # Another thread changes it meanwhile.
            return 0
        return self.code(self._clean(enclose(list, texts, len(value))))

    def error(self, error: BaseException) -> int:
        """The code of an exception: its class, and its message if that is a plain text."""
        text, arguments = class_name(type(error)), ARGUMENTS(error)
        if arguments and type(arguments[0]) is str:
            text = f"{text}: {arguments[0][:VALUE_LIMIT]}"
        return self.code(self._clean(text.replace("\n", " ")))

    def _container(self, kind: type, value: Any, depth: int) -> str:
        size = len(value)
        if not size:
            return repr(value)
        is_unordered = kind is set or kind is frozenset
        if depth == 0 or (is_unordered and size > ITEM_LIMIT):
            return f"<{kind.__name__} of {size} element{'s' if size > 1 else ''}>"
        texts: List[str] = []
        try:
            for one in list(islice(value.items() if kind is dict else value, ITEM_LIMIT)):
                if kind is dict:
                    texts.append(f"{self._part(one[0], depth - 1)}: {self._part(one[1], depth - 1)}")
                else:
                    texts.append(self._part(one, depth - 1))
        except RuntimeError:  # Another thread changes it meanwhile.
            return f"<{kind.__name__}>"
        return enclose(kind, texts, size)

    def _part(self, value: Any, depth: int) -> str:
        kind = type(value)
        if id(kind) in CONTAINER_IDS:
            return self._container(kind, value, depth)
        return repr(value[:VALUE_LIMIT]) if kind is str else write(value, 0)

    def _clean(self, text: str) -> str:
        if "0x" in text:
            text = ADDRESS.sub("0x…", text)
        if "/" in text:
            for place, name in self._places:
                text = text.replace(place, name)
        return cut(text, VALUE_LIMIT)


def enclose(kind: type, texts: List[str], size: int) -> str:
    if kind is set or kind is frozenset:
        texts.sort()
    if size > len(texts):
        texts.append(f"… {size - len(texts)} more")
    inside = ", ".join(texts)
    if kind is list:
        return f"[{inside}]"
    if kind is tuple:
        return f"({inside},)" if size == 1 else f"({inside})"
    return f"{{{inside}}}" if kind is not frozenset else f"frozenset({{{inside}}})"


def is_lasting(kind: type) -> bool:
    """Whether a class lives as long as its module: a reference to it keeps nothing alive."""
    if not class_flags(kind) & HEAP_TYPE:
        return True
    return is_global(module_of(kind), class_name(kind), kind)


def is_global(module: Any, name: Any, value: Any) -> bool:
    """Whether a module has something under a name."""
    if type(module) is not str or type(name) is not str:
        return False
    found = sys.modules.get(module)
    if type(found) is not type(sys):
        return False
    first, *rest = name.split(".")
    inside = vars(found).get(first)
    for part in rest:
        if not issubclass(type(inside), type):
            return False
        inside = class_dict(inside).get(part)
    return inside is value

"""A short digest of a test's parameters: the same in every VM whose test of this name is the same.

A name such as `test_area[shape2]` counts parameters, and where they come from a set another VM may
count them in another order. An object is what it holds, not what it says of itself: no code of the
project runs for a digest. Of an object inside an object only the plain attributes count, because what
else it leads to, a registry for example, is more in a VM that has imported more.
"""

import binascii
import contextlib
import enum
import functools
import os
import pathlib
import re
import types
from typing import Any, Dict, Iterable, List, Optional

# The depth to which containers are looked into, the most values in all, and the most letters of a text.
DEPTH, ITEMS, LETTERS = 5, 200, 2000
# The most elements of a set, and each one's share of the values: their order is that of chance.
MEMBERS, SHARE = 100, 20
ROWS = frozenset([list, tuple])
EXACT = frozenset([int, float, bool, str, bytes, type(None)])
PLAIN = (int, float, complex, str, bytes, bytearray)
NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
SLOT: Any = types.MemberDescriptorType
HEAP_TYPE = 1 << 9  # The flag of classes that Python code has made.
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class Digests:
    """The digests of one list of tests. Values that tests share are looked at once."""

    def __init__(self) -> None:
        self._known: Dict[int, str] = {}
        self._kinds: Dict[int, Kind] = {}

    def of(self, item: Any) -> Optional[str]:
        """The digest of an item; `None` if it has no parameters, or they are out of reach."""
        try:
            params: Dict[str, Any] = item.callspec.params
            parts = [f"{name}={self._show(value)}" for name, value in params.items()]
            # In a copy of the files the same value has another path.
            return crc("\n".join(parts).replace(str(item.config.rootpath), "."))
        except Exception:  # The project's objects may do anything, also when they are only looked at.
            return None

    def _show(self, value: Any) -> str:
        if type(value) in EXACT:
            return cut(repr(value))
        # The item keeps its parameters, so that no other value gets this number.
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = Look(self._kinds).show(value, DEPTH)
        return known


class Look:
    """A look at one value."""

    def __init__(self, kinds: Dict[int, "Kind"], is_inside: bool = False, left: int = ITEMS) -> None:
        self._kinds = kinds
        self._is_inside = is_inside  # Whether it is inside an object.
        self._left = left

    def show(self, value: Any, depth: int) -> str:
        """The type and the content of a value."""
        kind = type(value)
        if kind in EXACT or (kind in ROWS and is_exact(value)):
            return cut(repr(value))
        if kind is dict and is_exact(value) and is_exact(value.values()):
            return cut(repr(sorted(map(repr, value.items()))))
        self._left -= 1
        known = self._kinds.get(id(kind))
        if known is None:
            known = self._kinds[id(kind)] = Kind(kind)
        name = known.name
        if depth == 0 or self._left < 0:
            return name
        if known.is_plain:
            return f"{name}({', '.join(self._attributes(value, depth - 1))})"
        if issubclass(kind, NAMED):
            return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
        if issubclass(kind, enum.Enum):
            return f"{name}.{value._name_}"
        if issubclass(kind, pathlib.PurePath):
            return f"{name}({os.fspath(value)!r})"
        held = [*self._contents(value, depth - 1), *self._attributes(value, depth - 1)]
        if not held and is_told_by_c(kind):
            held = [cut(ADDRESS.sub("0x", repr(value)))]
        return f"{name}({', '.join(held)})"

    def _contents(self, value: Any, depth: int) -> List[str]:
        """The content of a container, or the text of a value of one of Python's own kinds."""
        kind = type(value)
        for plain in PLAIN:
            if issubclass(kind, plain):
                return [cut(plain.__repr__(value))]
        if issubclass(kind, BaseException):
            return self._all(value.args, depth)
        if issubclass(kind, functools.partial):
            return self._all([value.func, value.args, value.keywords], depth)
        if issubclass(kind, types.MethodType):
            return self._all([value.__func__, value.__self__], depth)
        if issubclass(kind, (list, tuple)):
            row: Any = list if issubclass(kind, list) else tuple
            return [str(row.__len__(value)), *self._all(row.__iter__(value), depth)]
        if issubclass(kind, (set, frozenset)):
            bag: Any = set if issubclass(kind, set) else frozenset
            members = list(bag.__iter__(value))
            look = Look(self._kinds, self._is_inside)
            looks = [look.spend(SHARE).show(one, depth) for one in members[:MEMBERS]]
            return [str(len(members)), *(sorted(looks) if len(members) <= MEMBERS else [])]
        if issubclass(kind, dict):
            return [str(dict.__len__(value)), *sorted(self._all(dict.items(value), depth))]
        return []

    def _attributes(self, value: Any, depth: int) -> List[str]:
        """The attributes that an object has of its own."""
        own: Dict[str, Any] = {}
        for name, slot in self._kinds[id(type(value))].slots:
            with contextlib.suppress(AttributeError):  # Not set.
                own[name] = slot.__get__(value)
        with contextlib.suppress(AttributeError):
            own.update(object.__getattribute__(value, "__dict__"))
        if self._is_inside:
            return [f"{name}={cut(repr(one))}" for name, one in own.items() if type(one) in EXACT]
        if own and is_exact(own.values()):
            return [cut(repr(own))]
        look = Look(self._kinds, is_inside=True, left=self._left)
        return [f"{name}={look.show(one, depth)}" for name, one in own.items()]

    def spend(self, left: int) -> "Look":
        self._left = left
        return self

    def _all(self, values: Iterable[Any], depth: int) -> List[str]:
        shown = []
        for value in values:
            if self._left <= 0:
                break
            shown.append(self.show(value, depth))
        return shown


class Kind:
    """The known facts about a class, which the values that are looked at keep alive."""

    def __init__(self, kind: type) -> None:
        self.name = f"{kind.__module__}.{kind.__qualname__}"
        owners = [one for one in kind.__mro__ if one.__flags__ & HEAP_TYPE]
        slots = ((name, slot) for one in owners for name, slot in vars(one).items())
        self.slots = [(name, slot) for name, slot in slots if type(slot) is SLOT]
        # An object of Python's plainest kind: whatever it is, is in its attributes.
        self.is_plain = kind.__base__ is object and bool(kind.__dictoffset__) and kind in owners


def is_exact(values: Any) -> bool:
    """Whether code in C makes the text of all of these, in no time."""
    return len(values) < ITEMS and EXACT.issuperset(map(type, values))


def is_told_by_c(kind: Any) -> bool:
    """Whether code in C makes the text of a value of this type, and not code of the project."""
    own = kind.__repr__
    return own is not object.__repr__ and isinstance(own, types.WrapperDescriptorType)


def cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{len(text)} {crc(text)}"


def crc(text: str) -> str:
    return f"{binascii.crc32(text.encode('utf-8', 'surrogatepass')):08x}"

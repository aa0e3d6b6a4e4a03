"""Looks at values without running any code of the project: what they are, whether they differ, how
they read.

A class can take over almost every question that Python lets one ask about its instances: equality,
hash, representation, attributes, even what class they are of. So everything here goes through the
methods of the built-in types themselves, and is told by `type` and `id` alone. Types are looked up by
`id` too, because a metaclass can take over the hash of a class.
"""

import datetime
import decimal
import functools
import pathlib
import re
import types
import uuid
from itertools import islice
from typing import Any, Dict, FrozenSet, Iterable, List, Optional, Tuple

TEXT_LIMIT = 200
ITEM_LIMIT = 30  # so many elements of a container are written
EQUAL_LIMIT = 1000  # so many elements are compared to see that two containers are alike
# Immutable, and with nothing inside that could change.
SCALARS = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range,
)  # fmt: skip
# Immutable too, but not worth writing out, or of a library that writes them well itself.
PLAIN = (
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath, re.Pattern,
)  # fmt: skip
SCALAR_IDS: FrozenSet[int] = frozenset(map(id, SCALARS))
# These may hold anything in theory, and never do.
ATOM_IDS: FrozenSet[int] = SCALAR_IDS | frozenset(map(id, (*PLAIN, types.CodeType, re.Match, slice)))
CONTAINER_IDS: FrozenSet[int] = frozenset(map(id, (tuple, list, dict, set, frozenset)))
COMPARED_IDS: FrozenSet[int] = SCALAR_IDS | frozenset(map(id, PLAIN))
CODE_TYPES = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, staticmethod, classmethod, property, functools.partial,
)  # fmt: skip
CODE_IDS: FrozenSet[int] = frozenset(map(id, CODE_TYPES))

class_dict = type.__dict__["__dict__"].__get__
class_mro = type.__dict__["__mro__"].__get__
class_flags = type.__dict__["__flags__"].__get__
class_name = type.__dict__["__qualname__"].__get__
class_offset = type.__dict__["__dictoffset__"].__get__
module_dict = vars(types.ModuleType)["__dict__"].__get__

HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8


class Absent:
    """Stands for a value that is not there."""


ABSENT = Absent()


def module_of(kind: type) -> str:
    """The name of the module that a class says it was defined in."""
    found = class_dict(kind).get("__module__")
    if type(found) is str:
        return found
    # Classes written in C have a dot in their name, or are built in.
    name = type.__dict__["__module__"].__get__(kind)
    return name if type(name) is str else ""


def name_of(value: Any) -> Optional[str]:
    """The name of a module; `None` for anything else."""
    if not issubclass(type(value), types.ModuleType):
        return None
    name = module_dict(value).get("__name__")
    return name if type(name) is str else None


def is_class(value: Any) -> bool:
    return issubclass(type(value), type)


def is_code(value: Any) -> bool:
    """Whether it is a function, a class or the like: something that a mock can replace."""
    return id(type(value)) in CODE_IDS or is_class(value) or type(value) is types.ModuleType


def is_mock(value: Any) -> bool:
    """Whether it comes from `unittest.mock` or its backport."""
    if type(value) is types.FunctionType:
        return "mock" in value.__dict__ and is_mock(value.__dict__["mock"])
    return any(module_of(kind) in ("unittest.mock", "mock.mock", "mock") for kind in class_mro(type(value)))


def is_same(before: Any, after: Any) -> bool:
    """Whether two values are one object, or built-in values that are equal all the way down."""
    if before is after:
        return True
    kind = type(before)
    if kind is not type(after):
        return False
    if id(kind) in COMPARED_IDS:
        return equals(before, after)
    return is_alike(before, after, [EQUAL_LIMIT])


def equals(before: Any, after: Any) -> bool:
    """Whether two values of one and the same type of `COMPARED_IDS` are equal."""
    kind = type(before)
    if kind is float:
        return bool(before == after) or (before != before and after != after)
    if kind is datetime.datetime or kind is datetime.time:
        zones = (before.tzinfo, after.tzinfo)
        if any(zone is not None and type(zone) is not datetime.timezone for zone in zones):
            return False  # The zone may be the project's, and would be asked.
    if kind is decimal.Decimal:
        return str(before) == str(after)
    return bool(before == after)


def is_alike(before: Any, after: Any, left: List[int]) -> bool:
    """Compares containers of the built-in types; `left` counts the elements that may be compared."""
    kind = type(before)
    if id(kind) not in CONTAINER_IDS or len(before) != len(after):
        return False
    left[0] -= len(before) + 10  # Each level counts too, because Python's own stack is limited.
    if left[0] < 0:
        return False
    if kind is dict:
        pairs = zip(before.items(), after.items())
        return all(
            are_equal(old_key, new_key, left) and are_equal(old, new, left)
            for (old_key, old), (new_key, new) in pairs
        )
    if kind is set or kind is frozenset:
        return all(id(type(one)) in SCALAR_IDS for one in (*before, *after)) and bool(before == after)
    return all(are_equal(old, new, left) for old, new in zip(before, after))


def are_equal(before: Any, after: Any, left: List[int]) -> bool:
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if id(type(before)) in COMPARED_IDS:
        return equals(before, after)
    return is_alike(before, after, left)


# --- how values read ----------------------------------------------------------------------------


def show(value: Any, limit: int = TEXT_LIMIT) -> Optional[str]:
    """A short text for a value; `None` for one that is not there."""
    if value is ABSENT:
        return None
    return cut(write(value, 3), limit)


def show_change(before: Any, after: Any) -> Tuple[Optional[str], Optional[str]]:
    """Texts for both sides of a change, which are never the same."""
    old, new = show(before), show(after)
    if old == new and new is not None:
        new = cut(new, TEXT_LIMIT - 17) + " (another object)"
    return old, new


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    # Lone surrogates cannot travel.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str or kind is bytes:
        return repr(value[:TEXT_LIMIT])
    if kind is int and value.bit_length() > 500:
        return f"<int of {value.bit_length()} bits>"
    if kind is datetime.datetime or kind is datetime.time:
        return f"{kind.__name__}({value.replace(tzinfo=None).isoformat()})"  # The zone may be the project's.
    if id(kind) in COMPARED_IDS:
        return repr(value)
    if id(kind) in CONTAINER_IDS:
        return write_container(value, depth)
    if kind is types.FunctionType:
        return f"<function {write_name(value.__module__, value.__qualname__)}>"
    if issubclass(kind, types.ModuleType):
        return f"<module {name_of(value)}>"
    if issubclass(kind, type):
        return f"<class {write_name(module_of(value), class_name(value))}>"
    if class_name(kind) == "LocalPath" and module_of(kind) in ("_pytest._py.path", "py._path.local"):
        return f"local({instance_dict(value).get('strpath')!r})"
    if is_mock(value):
        return f"<{class_name(kind)} of unittest.mock>"
    size = len_of(value)
    return f"<{class_name(kind)}>" if size is None else f"<{class_name(kind)} of {count(size, 'element')}>"


def write_name(module: Any, name: Any) -> str:
    return f"{module}.{name}" if type(module) is str and type(name) is str else "?"


def write_container(value: Any, depth: int) -> str:
    kind, size = type(value), len(value)
    if depth == 0:
        return f"<{kind.__name__} of {count(size, 'element')}>" if size else repr(value)
    if kind is dict:
        pairs = list(islice(value.items(), ITEM_LIMIT))
        texts = [f"{write(key, depth - 1)}: {write(one, depth - 1)}" for key, one in pairs]
    else:
        texts = [write(one, depth - 1) for one in islice(value, ITEM_LIMIT)]
        if kind is set or kind is frozenset:
            texts.sort()
    if size > ITEM_LIMIT:
        texts.append(f"… {size - ITEM_LIMIT} more")
    inside = ", ".join(texts)
    if kind is list:
        return f"[{inside}]"
    if kind is tuple:
        return f"({inside},)" if size == 1 else f"({inside})"
    if not size:
        return repr(value)
    return f"{{{inside}}}" if kind is not frozenset else f"frozenset({{{inside}}})"


def len_of(value: Any) -> Optional[int]:
    """The number of elements in a container, told by the built-in type that it is made of."""
    for kind in (dict, list, set, tuple, frozenset, bytearray):
        if issubclass(type(value), kind):
            return int(kind.__len__(value))
    return None


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def names(texts: Iterable[str], limit: int = 8) -> str:
    """A list of names for people, cut when it is long."""
    every = sorted(texts)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def instance_dict(value: Any) -> Dict[str, Any]:
    """The attributes of an instance, past whatever its class says they are."""
    getter = dict_getter(type(value))
    found: Dict[str, Any] = getter(value) if getter else {}
    return found


def dict_getter(kind: type) -> Any:
    """The built-in way to the `__dict__` of a class's instances, past whatever the class says it is."""
    for one in class_mro(kind):
        found: Any = class_dict(one).get("__dict__")
        if type(found) is types.GetSetDescriptorType:
            return found.__get__
    return None


def slot_members(kind: type) -> Dict[str, Any]:
    """The `__slots__` of a class and its bases, by name."""
    found: Dict[str, Any] = {}
    for one in class_mro(kind):
        if class_flags(one) & HEAP_TYPE:
            for name, member in class_dict(one).items():
                if type(member) is types.MemberDescriptorType and type(name) is str:
                    found.setdefault(name, member)
    found.pop("__weakref__", None)
    return found

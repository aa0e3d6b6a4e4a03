"""Containers: what was in them, what is in them now, and how to put it back.

A node remembers the contents of one thing by a shallow copy: references, so that it can tell that a
value was replaced, and what has to come back. What is inside those values is other nodes' business.
Only the methods of built-in types are called, never those that a class of the project puts over them.
"""

from collections import OrderedDict, deque
from operator import is_
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple
from weakref import ref

from unflake_state_values import (
    ABSENT,
    HEAP_TYPE,
    SCALAR_IDS,
    class_dict,
    class_flags,
    class_mro,
    count,
    is_same,
    module_of,
    show,
)

FEW = 20  # so many differences are told one by one, and more as one of the whole container


class Change(NamedTuple):
    """One difference inside a thing; without a label it is the thing as a whole."""

    label: Any
    before: Any
    after: Any


WHOLE = Change(ABSENT, ABSENT, ABSENT)


class Node:
    """A thing, what it held, and by which path it was found."""

    __slots__ = ("depth", "label", "parent", "saved", "thing")
    kind = "item"
    noun = "item"

    def __init__(self, thing: Any, parent: "Optional[Node]", label: Any) -> None:
        self.thing, self.parent, self.label = thing, parent, label
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.saved: Any = None

    def save(self) -> None:
        self.saved = self.read()

    def read(self) -> Any:
        """The contents, as they are now."""
        raise NotImplementedError

    def children(self) -> Iterable[Tuple[Any, Any]]:
        """The things that were in it, each with its label."""
        return ()

    def is_unchanged(self) -> bool:
        """Whether surely nothing is different: by identity alone, and quickly."""
        raise NotImplementedError

    def changes(self) -> List[Change]:
        """The differences now; `WHOLE` if they cannot be told piece by piece."""
        raise NotImplementedError

    def look(self, label: Any) -> Any:
        """The thing under a label now."""
        raise NotImplementedError

    def put(self, label: Any, value: Any) -> None:
        """Puts a value under a label, or takes it away if the value is absent."""
        raise NotImplementedError

    def put_all(self) -> None:
        """Puts all contents back."""
        raise NotImplementedError

    def can_put(self) -> bool:
        return True

    def write(self, label: Any) -> str:
        """The text of a label behind the path of this node."""
        return f"[{show(label, 60)}]"

    def path(self) -> str:
        parts: List[str] = []
        node = self
        while node.parent is not None and not node.has_own_path():
            parts.append(node.parent.write(node.label))
            node = node.parent
        parts.append(node.own_path())
        return "".join(reversed(parts))

    def has_own_path(self) -> bool:
        """Whether it has a name of its own, wherever it was found."""
        return False

    def own_path(self) -> str:
        return str(self.label)

    def texts(self) -> Tuple[Optional[str], Optional[str]]:
        """The contents as a whole, before and after."""
        live = self.read()
        before, after = show(self.saved, 10**6), show(live, 10**6)
        if before is not None and after is not None and max(len(before), len(after)) > 200:
            return count(len(self.saved), self.noun), count(len(live), self.noun)
        return before, after


class Mapping(Node):
    """A dictionary of any kind that is iterated as `dict` does it."""

    __slots__ = ()
    noun = "key"

    def save(self) -> None:
        self.saved = dict.copy(self.thing)

    def read(self) -> Any:
        return dict.copy(self.thing)

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return self.saved.items()  # type: ignore[no-any-return]

    def is_unchanged(self) -> bool:
        thing, saved = self.thing, self.saved
        return (
            dict.__len__(thing) == len(saved)
            and all(map(is_, dict.values(thing), saved.values()))
            and all(map(is_, dict.keys(thing), saved))
        )

    def changes(self) -> List[Change]:
        before, after = by_identity(self.saved), by_identity(self.read())
        found = []
        for key, (label, old) in before.items():
            new = after[key][1] if key in after else ABSENT
            if new is not old and not self.ignores(label, old, new) and not is_same(old, new):
                found.append(Change(label, old, new))
        for key, (label, new) in after.items():
            if key not in before and not self.ignores(label, ABSENT, new):
                found.append(Change(label, ABSENT, new))
        if len(found) > FEW or not all(is_plain_key(change.label) for change in found):
            return [WHOLE]
        return found

    def ignores(self, label: Any, _old: Any, _new: Any) -> bool:
        return issubclass(type(label), ref)  # It comes and goes with what it refers to.

    def look(self, label: Any) -> Any:
        return dict.get(self.thing, label, ABSENT)

    def put(self, label: Any, value: Any) -> None:
        owner = OrderedDict if issubclass(type(self.thing), OrderedDict) else dict
        if value is not ABSENT:
            owner.__setitem__(self.thing, label, value)
        elif label in dict.keys(self.thing):
            owner.__delitem__(self.thing, label)

    def put_all(self) -> None:
        owner = OrderedDict if issubclass(type(self.thing), OrderedDict) else dict
        owner.clear(self.thing)
        if owner is dict:
            dict.update(self.thing, self.saved)  # Takes over the hashes that are known.
        else:
            for key, value in self.saved.items():
                OrderedDict.__setitem__(self.thing, key, value)


class OddMapping(Mapping):
    """A dictionary whose class has its own way to iterate, which is not used."""

    __slots__ = ()

    def save(self) -> None:
        self.saved = self.read()

    def read(self) -> Any:
        keys = list(dict.keys(self.thing))
        if not all(map(is_plain_key, keys)):
            raise ValueError("keys with a hash of their own")
        return dict(zip(keys, dict.values(self.thing)))


class Sequence(Node):
    """A list, or a deque."""

    __slots__ = ()

    def read(self) -> Any:
        return list(self.owner().__iter__(self.thing))

    def owner(self) -> Any:
        return deque if issubclass(type(self.thing), deque) else list

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return enumerate(self.saved)

    def is_unchanged(self) -> bool:
        owner = list if type(self.thing) is list else self.owner()
        is_long = owner.__len__(self.thing) == len(self.saved)
        return is_long and all(map(is_, owner.__iter__(self.thing), self.saved))

    def changes(self) -> List[Change]:
        live = self.read()
        if len(live) != len(self.saved):
            return [WHOLE]
        pairs = enumerate(zip(self.saved, live))
        found = [Change(place, old, new) for place, (old, new) in pairs if not is_same(old, new)]
        return found if len(found) <= FEW else [WHOLE]

    def look(self, label: Any) -> Any:
        is_there = label < self.owner().__len__(self.thing)
        return self.owner().__getitem__(self.thing, label) if is_there else ABSENT

    def put(self, label: Any, value: Any) -> None:
        self.owner().__setitem__(self.thing, label, value)

    def put_all(self) -> None:
        self.owner().clear(self.thing)
        self.owner().extend(self.thing, self.saved)


class Elements(Node):
    """A set."""

    __slots__ = ()
    noun = "element"

    def read(self) -> Any:
        return set(self.thing)  # Takes the elements over as they are, for subclasses too.

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return ((one, one) for one in self.saved)

    def is_unchanged(self) -> bool:
        is_long = set.__len__(self.thing) == len(self.saved)
        return is_long and all(map(is_, set.__iter__(self.thing), self.saved))

    def changes(self) -> List[Change]:
        before, after = by_identity(self.saved), by_identity(self.read())
        changed = [
            table[key][0] for table in (before, after) for key in before.keys() ^ after.keys() if key in table
        ]
        return [WHOLE] if any(not issubclass(type(one), ref) for one in changed) else []

    def put_all(self) -> None:
        set.clear(self.thing)
        set.update(self.thing, self.saved)


def is_plain_key(key: Any) -> bool:
    """Whether a key can be looked up without running code of the project."""
    kind = type(key)
    if id(kind) in SCALAR_IDS:
        return True
    if kind is tuple:
        return all(map(is_plain_key, key))
    if issubclass(kind, (tuple, frozenset)):
        return False  # Their hash asks the elements.
    for one in class_mro(kind):
        own = class_dict(one)
        if "__hash__" in own or "__eq__" in own:
            return not class_flags(one) & HEAP_TYPE or module_of(one) in ("enum", "pathlib", "uuid")
    return False


def by_identity(contents: Iterable[Any]) -> Dict[Any, Tuple[Any, Any]]:
    """Keys and values under something that can be compared without running code of the project."""
    pairs = contents.items() if type(contents) is dict else ((one, one) for one in contents)
    return {key if is_value(key) else (ABSENT, id(key)): (key, value) for key, value in pairs}


def is_value(key: Any) -> bool:
    return id(type(key)) in SCALAR_IDS or (type(key) is tuple and all(map(is_value, key)))

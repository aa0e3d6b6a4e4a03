"""Walks over the objects that the project's modules hold, level by level, and makes a node of each.

Level by level means that each thing is found by its shortest path. Modules stand in `sys.modules` in
the order in which their imports ended, so a thing that several of them hold is found in the one that
made it. The walk goes into instances of any class, but not into modules, classes and functions that
are not the project's: `unflake_state_modules` looks at those, one level deep.
"""

import functools
import itertools
import logging
import os
import sys
import threading
import types
import weakref
from collections import deque
from time import thread_time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from unflake_state_hidden import RANDOM, random_sight, sights
from unflake_state_nodes import Elements, Mapping, Node, OddMapping, Sequence
from unflake_state_objects import Attributes, Cell, ClassAttributes, Function, Hidden, Passage, Patch, Slots
from unflake_state_values import (
    ATOM_IDS,
    class_dict,
    class_mro,
    class_name,
    class_offset,
    dict_getter,
    module_dict,
    module_of,
    names,
    slot_members,
)

Maker = Callable[[Any, Node, Any], Optional[Node]]
PASSAGES = (
    tuple, frozenset, types.MethodType, types.BuiltinMethodType, types.MappingProxyType, staticmethod,
    classmethod, property, functools.partial, map, zip, filter, enumerate, itertools.chain, itertools.cycle,
    itertools.islice, itertools.takewhile, itertools.dropwhile, itertools.zip_longest, itertools.starmap,
)  # fmt: skip
# Whatever these are, they are looked at elsewhere, or must be left alone.
CLOSED = (
    types.ModuleType, types.FrameType, types.TracebackType, types.CoroutineType, types.AsyncGeneratorType,
    weakref.ref, weakref.ProxyType, weakref.CallableProxyType, logging.Logger, logging.Manager,
    threading.Thread, type(type.__dict__["__dict__"]), type(types.FunctionType.__dict__["__globals__"]),
    types.WrapperDescriptorType, types.MethodDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
ENVIRONMENT = type(os.environ)  # An abstract class: it would ask the other one.
FRAMEWORK = ("_pytest", "pytest", "pluggy", "py", "unflake", "xdist", "hypothesis", "coverage", "_hypothesis")
BYTES = 64 * 1024 * 1024  # so much of arrays and streams is copied in all
STEPS = 256  # so many nodes between two looks at the clock


class Walk:
    """The nodes of one snapshot, and what it did not go into."""

    def __init__(self, modules: Set[str], until: float, limit: int) -> None:
        self.nodes: List[Node] = []
        self.seen: Set[int] = {id(value) for value in looked_at_elsewhere()}
        self.left_out: List[Node] = []
        self.opaque: Set[str] = set()
        self._modules, self._until, self._limit = modules, until, limit
        self._plans: Dict[int, Tuple[Maker, ...]] = dict.fromkeys(ATOM_IDS, ())
        self._kept: List[type] = []  # A type that ends would leave its id to another.
        self._sights, self._bytes = sights(), 0
        self._passages = frozenset(map(id, PASSAGES))

    def begin(self, starts: Iterable[Node]) -> None:
        for node in starts:
            if id(node.thing) not in self.seen:
                self.seen.add(id(node.thing))
                if node.saved is None:
                    node.save()
                self.nodes.append(node)

    def go(self, position: int = 0) -> None:
        """Follows every node from a position on, and those that come of them."""
        nodes, seen, plans = self.nodes, self.seen, self._plans
        while position < len(nodes):
            if position % STEPS == 0 and self._is_over():
                self.left_out = nodes[position:]
                return
            node = nodes[position]
            position += 1
            for label, value in node.children():
                kind = type(value)
                makers = plans.get(id(kind))
                if makers is None:
                    makers = self._plan(kind)
                if not makers or id(value) in seen:
                    continue
                seen.add(id(value))
                for make in makers:
                    child = make(value, node, label)
                    if child is not None:
                        try:
                            child.save()
                        except Exception:
                            self.opaque.add(write_class(kind))
                        else:
                            if type(child) is Hidden and not self._can_hold(child):
                                self.opaque.add(f"{write_class(kind)} that are large")
                            else:
                                nodes.append(child)

    def _can_hold(self, node: Hidden) -> bool:
        """Whether there is room for a copy of a large thing."""
        if node.saved is None:
            return node.kind != "item"
        parts = node.saved if type(node.saved) is tuple else (node.saved,)
        self._bytes += sum(len(part) for part in parts if type(part) is bytes or type(part) is str)
        return self._bytes <= BYTES

    def _is_over(self) -> bool:
        return thread_time() > self._until or len(self.nodes) > self._limit

    def unseen(self) -> List[str]:
        found = []
        if self.left_out:
            places = {top(node).path() for node in self.left_out}
            found.append(
                f"what {len(self.left_out):,} objects hold, below {names(places)}: out of time or too many"
            )
        if self.opaque:
            found.append(f"the inside of objects of {names(self.opaque)}")
        return found

    def _plan(self, kind: type) -> Tuple[Maker, ...]:
        """The way to look at the instances of a type."""
        plan = tuple(self._make_plan(kind))
        self._plans[id(kind)] = plan
        self._kept.append(kind)
        return plan

    def _make_plan(self, kind: type) -> Iterable[Maker]:
        if issubclass(kind, type):
            yield self._enter_class
            return
        module = module_of(kind)
        is_ours = is_framework(module) and module not in self._modules
        if issubclass(kind, CLOSED) or kind is ENVIRONMENT or is_ours:
            return
        yield from self._contents(kind)
        if kind is types.FunctionType:
            yield enter_function
            yield enter_function_dict
            return
        members = slot_members(kind)
        if members:
            yield functools.partial(make_slots, members)
        if kind is threading.local:
            yield functools.partial(enter_dict, local_dict, Attributes)
        elif class_offset(kind) != 0 or issubclass(kind, threading.local):
            getter = dict_getter(kind)
            is_patch = module_of(kind) == "unittest.mock" and class_name(kind).startswith("_patch")
            if getter is None:
                self.opaque.add(write_class(kind))
            else:
                yield functools.partial(enter_dict, getter, Patch if is_patch else Attributes)

    def _contents(self, kind: type) -> Iterable[Maker]:
        """The way to look at the content of a container."""
        if id(kind) in self._sights:
            yield functools.partial(make_hidden, self._sights[id(kind)])
        elif issubclass(kind, RANDOM):
            yield functools.partial(make_hidden, random_sight())
        if id(kind) in self._passages:
            yield Passage
        elif kind is types.CellType:
            yield Cell
        elif issubclass(kind, dict):
            is_plain = definer(kind, "__iter__") is dict
            yield Mapping if is_plain else OddMapping
        elif issubclass(kind, (list, deque)):
            yield Sequence
        elif issubclass(kind, set):
            yield Elements
        elif issubclass(kind, (tuple, frozenset)):
            yield Passage
        elif is_opaque(kind) and id(kind) not in self._sights:
            self.opaque.add(write_class(kind))

    def _enter_class(self, value: Any, parent: Node, label: Any) -> Optional[Node]:
        if module_of(value) not in self._modules:
            return None
        return ClassAttributes(value, parent, label)


def looked_at_elsewhere() -> Iterable[Any]:
    """The global generators, which methods and defaults of the project may hold."""
    for module, name in (("random", "_inst"), ("numpy.random.mtrand", "_rand")):
        found = sys.modules.get(module)
        if type(found) is types.ModuleType:
            yield module_dict(found).get(name)


def is_framework(module: str) -> bool:
    """Whether a module belongs to pytest, to tools around it, or to us."""
    first = module.partition(".")[0]
    return first in FRAMEWORK or first.startswith(("pytest_", "unflake_"))


def is_opaque(kind: type) -> bool:
    """Whether its instances may hold something that cannot be seen from Python."""
    return module_of(kind).partition(".")[0] in ("pandas", "sqlite3", "queue", "_queue", "torch")


def definer(kind: type, name: str) -> Optional[type]:
    return next((one for one in class_mro(kind) if name in class_dict(one)), None)


def write_class(kind: type) -> str:
    return f"{module_of(kind)}.{class_name(kind)}"


def top(node: Node) -> Node:
    """The thing that a module holds through which a node was found."""
    while node.parent is not None and node.parent.parent is not None:
        node = node.parent
    return node


def make_hidden(sight: Any, value: Any, parent: Node, label: Any) -> Node:
    return Hidden(value, parent, label, sight)


def make_slots(members: Dict[str, Any], value: Any, parent: Node, label: Any) -> Node:
    return Slots(value, parent, label, members)


def enter_dict(getter: Any, make: Any, value: Any, parent: Node, label: Any) -> Optional[Node]:
    contents = getter(value)
    node: Optional[Node] = make(contents, parent, label) if type(contents) is dict else None
    return node


def local_dict(value: Any) -> Any:
    """The values of a thread in a `threading.local`. The class itself answers, not a class of the project."""
    return threading.local.__getattribute__(value, "__dict__")


def enter_function(value: Any, parent: Node, label: Any) -> Optional[Node]:
    """Only if it carries something that can change: most functions do not, and there are many."""
    if value.__closure__ is None and value.__kwdefaults__ is None:
        defaults = value.__defaults__
        if defaults is None or all(id(type(one)) in ATOM_IDS for one in defaults):
            return None
    return Function(value, parent, label)


def enter_function_dict(value: Any, parent: Node, label: Any) -> Optional[Node]:
    return Attributes(value.__dict__, parent, label) if value.__dict__ else None

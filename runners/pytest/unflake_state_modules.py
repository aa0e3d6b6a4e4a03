"""Modules: which are the project's, what was replaced in the others, and which came or went.

Other people's modules are looked at one level deep and by identity: that is where mocks that were not
undone, patched classes and changed registries are.
"""

import os
import sys
import sysconfig
import types
from collections import deque
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from unflake_state_hidden import CACHE, sights
from unflake_state_nodes import Elements, Mapping, Node, Sequence
from unflake_state_objects import Attributes, ClassAttributes, Globals, Hidden
from unflake_state_values import (
    ABSENT,
    ATOM_IDS,
    HEAP_TYPE,
    IMMUTABLE_TYPE,
    class_flags,
    class_name,
    class_offset,
    dict_getter,
    is_class,
    is_code,
    module_dict,
    module_of,
)
from unflake_state_walk import is_framework

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
STANDARD = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib")})
# Nobody's; and what pytest itself loads when a test first wants a temporary folder.
STARTERS = (
    "__main__",
    "sitecustomize",
    "usercustomize",
    "__mp_main__",
    "getpass",
    "pwd",
    "readline",
    "termios",
)
OURS, PROJECT, INSTALLED, BUILT_IN = "ours", "project", "installed", "built-in"
# Names whose values change by themselves, or are examined elsewhere with more understanding.
NOISE: Dict[str, Tuple[str, ...]] = {
    "sys": (
        "stdin", "stdout", "stderr", "last_type", "last_value", "last_traceback", "last_exc", "modules",
        "path", "path_importer_cache", "argv", "meta_path", "path_hooks", "ps1", "ps2",
    ),
    "builtins": ("_",),
    "posix": ("environ",),
    "warnings": ("filters", "_filters_version", "_onceregistry", "onceregistry"),
    "_warnings": ("filters", "_onceregistry"),
    "logging": ("_handlers", "_handlerList", "root", "_loggerClass"),
    "linecache": ("cache",),
    "re": ("_cache", "_cache2"),
    "threading": (
        "_active", "_limbo", "_dangling", "_shutdown_locks", "_counter", "_trace_hook",
        "_threading_atexits",
    ),
    "random": ("_inst",),
    "tempfile": ("_name_sequence",),
    "time": ("tzname", "timezone", "altzone", "daylight"),
    "typing": ("_cleanups",),
    "functools": ("_kwd_mark",),
    "encodings": ("_cache",),
    "inspect": ("modulesbyfile", "_filesbymodname"),
    "unittest.case": ("_module_cleanups",),
    "importlib._bootstrap": ("_module_locks", "_blocking_on"),
    "_frozen_importlib": ("_module_locks", "_blocking_on"),
    "subprocess": ("_active",),
    "zipimport": ("_zip_directory_cache",),
}  # fmt: skip


class Modules:
    """Sorts what is in `sys.modules`."""

    def __init__(self, roots: List[str]) -> None:
        self._roots = tuple(root.rstrip(os.sep) + os.sep for root in roots)
        self._sorted: Dict[Tuple[str, Optional[str]], str] = {}

    def sort(self, name: str, module: Any) -> str:
        """The owner of a module."""
        file = file_of(module)
        found = self._sorted.get((name, file))
        if found is None:
            found = self._sorted[name, file] = self._sort(name, file)
        return found

    def _sort(self, name: str, file: Optional[str]) -> str:
        # Before the rest: the project may itself be a plugin of pytest.
        if file is not None and name != "__main__" and self.is_project(file):
            return PROJECT
        if is_framework(name) or name in STARTERS:
            return OURS
        if file is None:
            return BUILT_IN
        return BUILT_IN if file.startswith(STANDARD) and "-packages" + os.sep not in file else INSTALLED

    def is_project(self, file: str) -> bool:
        """Whether a module or some code is the project's."""
        if file.startswith("<"):
            return False  # Frozen, or made at run time.
        file = os.path.abspath(file)
        if file.startswith(HERE) and os.path.basename(file).startswith("unflake_"):
            return False
        for root in self._roots:
            if file.startswith(root) and not file.startswith(STANDARD):
                # A virtual environment may lie inside the project.
                return "-packages" + os.sep not in file[len(root) :]
        return False

    def every(self) -> Iterator[Tuple[str, Any, str]]:
        """All modules in the order in which their imports ended, each with whose it is."""
        for name, module in list(sys.modules.items()):
            if type(name) is str and issubclass(type(module), types.ModuleType):
                yield name, module, self.sort(name, module)


def file_of(module: Any) -> Optional[str]:
    if not issubclass(type(module), types.ModuleType):
        return None
    file = module_dict(module).get("__file__")
    return file if type(file) is str else None


class ForeignGlobals(Globals):
    """The `__dict__` of a module that is not the project's."""

    __slots__ = ()
    kind = "replaced"

    def ignores(self, label: Any, old: Any, new: Any) -> bool:
        if label in NOISE.get(str(self.label), ()) or super().ignores(label, old, new):
            return True
        if old is ABSENT and origin_of(new) == str(self.label).partition(".")[0]:
            return True  # A package that loads its parts when they are first needed.
        # The standard library makes many things of its own when they are first needed.
        if old is not None or type(label) is not str or not self.is_standard():
            return False
        if label[:1] != "_" and label != "tempdir":
            return False
        made_by = module_of(type(new)).partition(".")[0]
        return made_by in ("builtins", "re", str(self.label).partition(".")[0])

    def is_standard(self) -> bool:
        file = self.saved.get("__file__")
        return type(file) is not str or (file.startswith(STANDARD) and "-packages" + os.sep not in file)


class ForeignClass(ClassAttributes):
    """The names that a class defines which is not the project's."""

    __slots__ = ()
    kind = "replaced"

    def ignores(self, label: Any, old: Any, new: Any) -> bool:
        if super().ignores(label, old, new):
            return True
        # Nobody but its author changes what is private and no code.
        is_private = type(label) is str and label[:1] == "_" and not is_code(old)
        return is_private and isinstance(self.parent, ForeignGlobals) and self.parent.is_standard()

    def has_own_path(self) -> bool:
        return True

    def own_path(self) -> str:
        return f"{module_of(self.thing)}.{class_name(self.thing)}"


CLASS, MAPPING, SEQUENCE, ELEMENTS, CACHED, OTHER = "class", Mapping, Sequence, Elements, "cache", "other"


class Foreign:
    """Looks one level deep into modules that are not the project's."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen
        self._shapes: Dict[int, Any] = dict.fromkeys(ATOM_IDS, OTHER)
        self._kept: List[type] = []
        self._cache_sight = sights()[id(CACHE)]
        self.nodes: List[Node] = []

    def add(self, name: str, module: Any, whose: str) -> None:
        contents = module_dict(module)
        if id(contents) in self._seen:
            return
        self._seen.add(id(contents))
        top = ForeignGlobals(contents, None, name)
        top.save()
        self.nodes.append(top)
        self._look(top, NOISE.get(name, ()), whose == INSTALLED, is_class=False)

    def _look(self, parent: Node, noise: Tuple[str, ...], is_installed: bool, is_class: bool) -> None:
        seen, shapes = self._seen, self._shapes
        for label, value in parent.saved.items():
            kind = type(value)
            shape = shapes.get(id(kind))
            if shape is None:
                shape = self._shape(kind)
            if shape is OTHER or id(value) in seen or type(label) is not str or label in noise:
                continue
            if shape is CLASS:
                if not is_class:
                    self._add_class(value, parent, label, is_installed)
            elif label[:2] != "__" and (is_installed or not (label[:1] == "_" and "cache" in label)):
                self._add(shape, value, parent, label, is_installed)

    def _shape(self, kind: type) -> Any:
        shape: Any = OTHER
        if issubclass(kind, type):
            shape = CLASS
        elif kind is CACHE:
            shape = CACHED
        elif kind is dict:
            shape = Mapping
        elif kind is list or kind is deque:
            shape = Sequence
        elif kind is set:
            shape = Elements
        elif class_offset(kind) and class_flags(kind) & HEAP_TYPE and not issubclass(kind, types.ModuleType):
            shape = dict_getter(kind) or OTHER
        self._shapes[id(kind)] = shape
        self._kept.append(kind)
        return shape

    def _add_class(self, value: Any, parent: Node, label: Any, is_installed: bool) -> None:
        self._seen.add(id(value))
        flags = class_flags(value)
        if flags & HEAP_TYPE and not flags & IMMUTABLE_TYPE and not is_framework(module_of(value)):
            node = ForeignClass(value, parent, label)
            node.save()
            self.nodes.append(node)
            if is_installed:
                self._look(node, (), is_installed, is_class=True)

    def _add(self, shape: Any, value: Any, parent: Node, label: Any, is_installed: bool) -> None:
        node: Node
        if shape is Mapping or shape is Sequence or shape is Elements:
            node = shape(value, parent, label)
        elif not is_installed:
            return
        elif shape is CACHED:
            node = Hidden(value, parent, label, self._cache_sight)
        else:
            contents = shape(value)
            if type(contents) is not dict:
                return
            node = Attributes(contents, parent, label)
        self._seen.add(id(value))
        node.save()
        self.nodes.append(node)


def origin_of(value: Any) -> Optional[str]:
    """The package in which a class or function was defined."""
    module = module_of(value) if is_class(value) else None
    if type(value) is types.FunctionType:
        module = value.__module__
    return module.partition(".")[0] if type(module) is str else None


def owner_of(node: Node) -> Optional[str]:
    """The module or class that something belongs to which was replaced."""
    while node.parent is not None and type(node) is not ForeignClass:
        node = node.parent
    return node.path() if type(node) in (ForeignGlobals, ForeignClass) else None


def group_modules(new: Iterable[str], known: Iterable[str]) -> Dict[str, List[str]]:
    """New modules under the outermost new package that they lie in."""
    new, old = set(new), set(known)
    found: Dict[str, List[str]] = {}
    for name in sorted(new):
        parts = name.split(".")
        tops = [".".join(parts[:size]) for size in range(1, len(parts) + 1)]
        found.setdefault(next(top for top in tops if top in new and top not in old), []).append(name)
    return found

"""Objects: the attributes of instances, modules, classes and functions, and things that hide theirs.

They are read through the descriptors that the interpreter made for them, so a property, a
`__getattr__` or a `__dict__` of the project's is never asked.
"""

import gc
from operator import is_
from types import CellType, FunctionType, MappingProxyType
from typing import Any, Callable, ClassVar, Dict, Iterable, List, NamedTuple, Optional, Tuple

from unflake_state_nodes import WHOLE, Change, Mapping, Node
from unflake_state_values import ABSENT, class_dict, cut, is_same, name_of, show

# They come and go by themselves, or belong to pytest and the interpreter.
IGNORED_NAMES = frozenset(
    (
        "__warningregistry__", "__annotations__", "__annotate__", "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__", "__builtins__", "__cached__", "__conditional_annotations__", "_abc_impl",
        "__firstlineno__", "__static_attributes__", "@py_builtins", "@pytest_ar", "pytestmark",
        "_classSetupFailed", "__unittest_skip__", "__unittest_skip_why__", "_class_cleanups",
        "tearDown_exceptions", "__slotnames__",
    )
)  # fmt: skip


class Attributes(Mapping):
    """The `__dict__` of an instance or of a function."""

    __slots__ = ()
    kind = "attribute"
    noun = "attribute"

    def write(self, label: Any) -> str:
        return f".{label}" if type(label) is str else f".{show(label, 60)}"

    def ignores(self, label: Any, _old: Any, _new: Any) -> bool:
        return type(label) is str and label in IGNORED_NAMES


class Patch(Attributes):
    """A patch of `unittest.mock` that decorates a test: only what it puts in place outlives the test."""

    __slots__ = ()

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return [("new", self.saved["new"])] if "new" in self.saved else []

    def ignores(self, label: Any, _old: Any, _new: Any) -> bool:
        return True


class Globals(Attributes):
    """The `__dict__` of a module."""

    __slots__ = ()
    kind = "global"
    noun = "name"

    def children(self) -> Iterable[Tuple[Any, Any]]:
        pairs = self.saved.items()
        return [(name, value) for name, value in pairs if type(name) is not str or name not in IGNORED_NAMES]

    def ignores(self, label: Any, old: Any, new: Any) -> bool:
        if super().ignores(label, old, new):
            return True
        # An import names the new module in its package; that it was imported is told elsewhere.
        found = name_of(new)
        return found is not None and found == f"{self.saved.get('__name__')}.{label}"


class ClassAttributes(Attributes):
    """The names that a class itself defines."""

    __slots__ = ()

    def save(self) -> None:
        self.saved = MappingProxyType.copy(class_dict(self.thing))

    def read(self) -> Any:
        return MappingProxyType.copy(class_dict(self.thing))

    def is_unchanged(self) -> bool:
        live, saved = class_dict(self.thing), self.saved
        return (
            len(live) == len(saved)
            and all(map(is_, live.values(), saved.values()))
            and all(map(is_, live, saved))
        )

    def look(self, label: Any) -> Any:
        return class_dict(self.thing).get(label, ABSENT)

    def put(self, label: Any, value: Any) -> None:
        if value is not ABSENT:
            type.__setattr__(self.thing, label, value)
        elif label in class_dict(self.thing):
            type.__delattr__(self.thing, label)

    def put_all(self) -> None:
        live = self.read()
        for name in live:
            if name not in self.saved:
                self.put(name, ABSENT)
        for name, value in self.saved.items():
            if live.get(name, ABSENT) is not value and name not in IGNORED_NAMES:
                self.put(name, value)


class Slots(Node):
    """The values of an instance in `__slots__`."""

    __slots__ = ("members",)
    kind = "attribute"

    def __init__(self, thing: Any, parent: Optional[Node], label: Any, members: Dict[str, Any]) -> None:
        super().__init__(thing, parent, label)
        self.members = members

    def read(self) -> Any:
        return {name: self.look(name) for name in self.members}

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return [(name, value) for name, value in self.saved.items() if value is not ABSENT]

    def is_unchanged(self) -> bool:
        return all(self.look(name) is value for name, value in self.saved.items())

    def changes(self) -> List[Change]:
        pairs = [(name, old, self.look(name)) for name, old in self.saved.items()]
        return [Change(name, old, new) for name, old, new in pairs if not is_same(old, new)]

    def look(self, label: Any) -> Any:
        try:
            return self.members[label].__get__(self.thing)
        except AttributeError:
            return ABSENT

    def put(self, label: Any, value: Any) -> None:
        if value is not ABSENT:
            self.members[label].__set__(self.thing, value)
        elif self.look(label) is not ABSENT:
            self.members[label].__delete__(self.thing)

    def write(self, label: Any) -> str:
        return f".{label}"


class Function(Slots):
    """The parts of a function: defaults and code."""

    __slots__ = ()
    PARTS: ClassVar[Dict[str, Any]] = {
        name: FunctionType.__dict__[name] for name in ("__defaults__", "__kwdefaults__", "__code__")
    }

    def __init__(self, thing: Any, parent: Optional[Node], label: Any) -> None:
        super().__init__(thing, parent, label, self.PARTS)

    def children(self) -> Iterable[Tuple[Any, Any]]:
        code, defaults = self.saved["__code__"], self.saved["__defaults__"] or ()
        parameters = code.co_varnames[: code.co_argcount]
        for name, value in zip(parameters[len(parameters) - len(defaults) :], defaults):
            yield Wording(f"({name}=…)"), value
        for name, value in (self.saved["__kwdefaults__"] or {}).items():
            yield Wording(f"({name}=…)"), value
        for name, cell in zip(code.co_freevars, self.thing.__closure__ or ()):
            yield Wording(f".<closure>.{name}"), cell

    def write(self, label: Any) -> str:
        return label.text if type(label) is Wording else f".{label}"


class Cell(Slots):
    """A variable that functions share with the function around them."""

    __slots__ = ()
    CONTENTS: ClassVar[Dict[str, Any]] = {"cell_contents": CellType.__dict__["cell_contents"]}

    def __init__(self, thing: Any, parent: Optional[Node], label: Any) -> None:
        super().__init__(thing, parent, label, self.CONTENTS)

    def look(self, label: Any) -> Any:
        try:
            return self.thing.cell_contents
        except ValueError:  # It is empty.
            return ABSENT

    def put(self, label: Any, value: Any) -> None:
        if value is not ABSENT:
            self.thing.cell_contents = value
        elif self.look(label) is not ABSENT:
            del self.thing.cell_contents

    def write(self, label: Any) -> str:
        return ""


class Hidden(Node):
    """A thing whose inside only its own type can tell, as a token that can be compared."""

    __slots__ = ("kept", "kind", "sight")

    def __init__(self, thing: Any, parent: Optional[Node], label: Any, sight: "Sight") -> None:
        super().__init__(thing, parent, label)
        self.sight, self.kind = sight, sight.kind

    def save(self) -> None:
        self.saved, self.kept = self.read(), self.sight.keep(self.thing)

    def read(self) -> Any:
        return self.sight.take(self.thing)

    def is_unchanged(self) -> bool:
        return bool(self.sight.take(self.thing) == self.saved)

    def changes(self) -> List[Change]:
        return [] if self.is_unchanged() else [WHOLE]

    def look(self, label: Any) -> Any:
        return self.read()

    def put_all(self) -> None:
        if self.sight.put is None:
            raise ValueError("it has no way back")
        fresh = self.sight.put(self.thing, self.saved, self.kept)
        if fresh is not None and fresh is not self.thing and self.parent is not None:
            # It cannot be turned back, but another one can stand where it stood.
            self.parent.put(self.label, fresh)
            self.parent.saved[self.label] = fresh
            self.thing = fresh
        self.save()  # Some are only emptied, and then that is what they are compared with.

    def can_put(self) -> bool:
        return self.sight.put is not None

    def texts(self) -> Tuple[Optional[str], Optional[str]]:
        return cut(self.sight.show(self.saved)), cut(self.sight.show(self.read()))


class Passage(Node):
    """Something that does not change itself, but leads to what may: a tuple, a bound method."""

    __slots__ = ()

    def read(self) -> Any:
        if type(self.thing) is MappingProxyType:
            return gc.get_referents(self.thing)[:1]
        return list(self.thing) if type(self.thing) is tuple else gc.get_referents(self.thing)

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return enumerate(self.saved)

    def is_unchanged(self) -> bool:
        return True

    def write(self, label: Any) -> str:
        return f"[{label}]" if type(self.thing) is tuple else ""


class Start(Node):
    """The start of a walk that does not begin at a module."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, label: str, values: Dict[str, Any]) -> None:
        super().__init__(values, None, label)
        self.kind, self.saved = kind, values

    def children(self) -> Iterable[Tuple[Any, Any]]:
        return self.saved.items()  # type: ignore[no-any-return]

    def is_unchanged(self) -> bool:
        return True

    def write(self, label: Any) -> str:
        return str(label)


class Sight(NamedTuple):
    """The way to look into a hidden thing: a token of built-in values, and the way back."""

    kind: str
    take: Callable[[Any], Any]
    show: Callable[[Any], str]
    # Gets the thing, the token and what was kept; gives another thing if this one cannot be put back.
    put: Optional[Callable[[Any, Any, Any], Any]] = None
    keep: Callable[[Any], Any] = id


class Wording:
    """A label that is no key, only words."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

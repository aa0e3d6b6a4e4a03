"""Settings of the interpreter and of the standard library that reach every test.

Nothing is imported for their sake: what the project has not loaded has no state.
"""

import contextvars
import gc
import logging
import random
import sys
import types
import warnings
from typing import Any, ClassVar, Dict, List, Optional, Tuple

from unflake_state_hidden import RANDOM, numpy_sights, show_random
from unflake_state_modules import OURS, Modules, group_modules
from unflake_state_probes import Probe, Setting
from unflake_state_values import ABSENT, class_mro, count, cut, dict_getter, module_dict, module_of, show
from unflake_state_walk import is_framework

logger_dict = dict_getter(logging.Logger)


def setting_probes(modules: Modules) -> List[Probe]:
    return [
        Loaded(modules),
        Listing("search-path", "sys.path", sys),
        Listing("interpreter", "sys.argv", sys),
        Listing("interpreter", "sys.meta_path", sys),
        Listing("interpreter", "sys.path_hooks", sys),
        Streams(),
        Setting("interpreter", "sys.getrecursionlimit()", sys.getrecursionlimit, sys.setrecursionlimit),
        Setting("interpreter", "sys.getswitchinterval()", sys.getswitchinterval, sys.setswitchinterval),
        Setting("interpreter", "gc.isenabled()", Quiet.is_enabled, put_collector),
        Setting("interpreter", "gc.get_threshold()", gc.get_threshold, lambda old: gc.set_threshold(*old)),
        Setting("random", "random", take_random, put_random, show_random),
        NumpyRandom(),
        Locale(),
        Decimal(),
        Listing("warnings", "warnings.filters", warnings),
        Loggers(),
        ContextVariables(),
    ]


class Quiet:
    """Keeps the garbage collector from running because of what a snapshot allocates."""

    was_enabled = True

    def __enter__(self) -> None:
        Quiet.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_error: Any) -> None:
        if Quiet.was_enabled:
            gc.enable()

    @classmethod
    def is_enabled(cls) -> bool:
        """Its value before we came."""
        return cls.was_enabled


def put_collector(before: bool) -> None:
    (gc.enable if before else gc.disable)()


class Listing(Probe):
    """A list that a module holds; it may be changed in place or replaced."""

    def __init__(self, kind: str, path: str, module: types.ModuleType) -> None:
        super().__init__()
        self.kind, self._path = kind, path
        self._contents, self._name = module_dict(module), path.rpartition(".")[2]

    def take(self) -> Dict[str, Any]:
        found = self._contents.get(self._name)
        return {self._path: (found, list(found) if type(found) is list else None)}

    def is_same(self, before: Any, after: Any) -> bool:
        if before[1] is None or after[1] is None:
            return before[0] is after[0]
        pairs = zip(before[1], after[1])
        return len(before[1]) == len(after[1]) and all(
            old is new or (type(old) is type(new) is str and old == new) for old, new in pairs
        )

    def show(self, token: Any) -> Optional[str]:
        return show(token[0] if token[1] is None else token[1])

    def show_both(self, before: Any, after: Any) -> Tuple[Optional[str], Optional[str]]:
        texts = self.show(before), self.show(after)
        old, new = before[1] or [], after[1] or []
        if not any(str(text).endswith("…") for text in texts) or {type(one) for one in [*old, *new]} != {str}:
            return texts
        # A search path is long, and mostly the same.
        gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
        rest = len(old) - len(gone)
        return cut(f"{show(gone)} and {rest} more"), cut(f"{show(come)} and {rest} more")

    def put(self, path: str, before: Any, after: Any) -> None:
        old, contents = before
        if contents is not None:
            old[:] = contents
        self._contents[self._name] = old
        if self._path == "warnings.filters":
            refresh: Any = getattr(warnings, "_filters_mutated", None) or getattr(
                warnings, "_filters_mutated_lock_held", None
            )
            if refresh is not None:
                refresh()


class Streams(Probe):
    """The standard streams. Those of pytest's capture come and go."""

    kind = "interpreter"

    def take(self) -> Dict[str, Any]:
        streams = {f"sys.{name}": getattr(sys, name, None) for name in ("stdin", "stdout", "stderr")}
        return {
            path: None
            if is_framework(module_of(type(stream))) or stream is getattr(sys, f"__{path[4:]}__")
            else stream
            for path, stream in streams.items()
        }

    def is_same(self, before: Any, after: Any) -> bool:
        return before is after

    def show(self, token: Any) -> Optional[str]:
        return "as pytest set it" if token is None else show(token)

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not None

    def put(self, path: str, before: Any, after: Any) -> None:
        setattr(sys, path[4:], before)


class Loaded(Probe):
    """`sys.modules`. What an import brought with it is one piece."""

    kind = "module"

    def __init__(self, modules: Modules) -> None:
        super().__init__()
        self._modules = modules
        self._known: Dict[str, Any] = {}

    def mark(self) -> Dict[str, Any]:
        self._known = self._now()
        return self.take()

    def _now(self) -> Dict[str, Any]:
        return {
            name: module
            for name, module in dict.copy(sys.modules).items()
            if type(name) is str and self._modules.sort(name, module) != OURS
        }

    def take(self) -> Dict[str, Any]:
        now = self._now()
        new = [name for name in now if name not in self._known]
        found: Dict[str, Any] = {
            f"sys.modules[{name!r}]": module for name, module in now.items() if name in self._known
        }
        for top, inside in group_modules(new, self._known).items():
            found[f"sys.modules[{top!r}]"] = Import({name: now[name] for name in inside})
        return found

    def look(self, path: str) -> Any:
        name = path[len("sys.modules['") : -2]
        module = sys.modules.get(name, ABSENT)
        return module if module is ABSENT or name in self._known else Import({name: module})

    def is_same(self, before: Any, after: Any) -> bool:
        return before is after

    def show(self, token: Any) -> Optional[str]:
        if type(token) is Import:
            size = len(token.modules)
            return "imported" if size == 1 else f"imported, with {count(size - 1, 'module')} inside"
        return show(token)

    def put(self, path: str, before: Any, after: Any) -> None:
        if type(after) is Import:
            for name, module in after.modules.items():
                sys.modules.pop(name, None)
                parent, _, last = name.rpartition(".")
                inside = sys.modules.get(parent)
                if inside is not None and module_dict(inside).get(last) is module:
                    del module_dict(inside)[last]
        else:
            sys.modules[path[len("sys.modules['") : -2]] = before


class Import:
    """Modules that were loaded since the snapshot, under the outermost of them."""

    def __init__(self, modules: Dict[str, Any]) -> None:
        self.modules = modules


def take_random() -> Any:
    inst = module_dict(random)["_inst"]
    return RANDOM.getstate(inst), inst.__dict__.get("gauss_next")


def put_random(before: Any) -> None:
    inst = module_dict(random)["_inst"]
    RANDOM.setstate(inst, before[0])
    inst.gauss_next = before[1]


class NumpyRandom(Probe):
    """numpy's global generator."""

    kind = "random"

    def take(self) -> Dict[str, Any]:
        numpy: Any = sys.modules.get("numpy.random.mtrand")
        generator = module_dict(numpy).get("_rand") if type(numpy) is types.ModuleType else None
        sight = numpy_sights().get(id(type(generator)))
        return {} if sight is None else {"numpy.random": sight.take(generator)}

    def show(self, token: Any) -> Optional[str]:
        return show_random(token)

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not ABSENT

    def put(self, path: str, before: Any, after: Any) -> None:
        generator = module_dict(sys.modules["numpy.random.mtrand"])["_rand"]
        sight = numpy_sights()[id(type(generator))]
        if sight.put is not None:
            sight.put(generator, before, None)


class Locale(Probe):
    kind = "locale"

    def take(self) -> Dict[str, Any]:
        locale: Any = sys.modules.get("_locale")
        return {} if locale is None else {"locale": locale.setlocale(locale.LC_ALL, None)}

    def show_both(self, before: Any, after: Any) -> Tuple[Optional[str], Optional[str]]:
        old, new = str(before).split(";"), str(after).split(";")
        if len(old) != len(new):
            return self.show(before), self.show(after)
        pairs = [(one, other) for one, other in zip(old, new) if one != other]
        return cut("; ".join(one for one, _ in pairs)), cut("; ".join(other for _, other in pairs))

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not ABSENT

    def put(self, path: str, before: Any, after: Any) -> None:
        locale: Any = sys.modules["_locale"]
        locale.setlocale(locale.LC_ALL, before)


class Decimal(Probe):
    """The context of `decimal`, without its flags: every calculation sets some."""

    kind = "interpreter"
    NAMES = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")

    def take(self) -> Dict[str, Any]:
        decimal: Any = sys.modules.get("decimal")
        if decimal is None:
            return {}
        held = [
            value
            for variable, value in contextvars.copy_context().items()
            if variable.name == "decimal_context"
        ]
        context = held[0] if held else decimal.DefaultContext
        found = {f"decimal.getcontext().{name}": getattr(context, name) for name in self.NAMES}
        traps = [signal.__name__ for signal, is_set in context.traps.items() if is_set]
        return {**found, "decimal.getcontext().traps": tuple(sorted(traps))}

    def put(self, path: str, before: Any, after: Any) -> None:
        decimal: Any = sys.modules["decimal"]
        name = path.rpartition(".")[2]
        context = decimal.getcontext()
        if name == "traps":
            for signal in context.traps:
                context.traps[signal] = signal.__name__ in before
        else:
            setattr(context, name, before)


class Loggers(Probe):
    """Levels, handlers and filters of all loggers. A new logger that nobody set up is as good as none."""

    kind = "logging"
    DEFAULTS: ClassVar[Dict[str, Any]] = {
        "level": 0,
        "propagate": True,
        "disabled": False,
        "handlers": [],
        "filters": [],
    }

    def take(self) -> Dict[str, Any]:
        manager = logging.Logger.manager
        loggers: Dict[str, Any] = {"": logging.root}
        loggers.update(
            (name, one) for name, one in dict.copy(manager.loggerDict).items() if type(name) is str
        )
        found: Dict[str, Any] = {"logging.root.manager.disable": manager.__dict__.get("_disable", 0)}
        for name, logger in loggers.items():
            if logging.Logger not in class_mro(type(logger)):
                continue  # It only holds a place for one.
            inside = logger_dict(logger)
            for attribute, default in self.DEFAULTS.items():
                value = inside.get(attribute)
                if type(value) is list:
                    value = [one for one in value if not is_framework(module_of(type(one)))]
                if type(value) is not type(default) or value != default:
                    found[
                        f"logging.getLogger({name!r}).{attribute}" if name else f"logging.root.{attribute}"
                    ] = value
        return found

    def is_same(self, before: Any, after: Any) -> bool:
        if type(before) is list and type(after) is list:
            return len(before) == len(after) and all(old is new for old, new in zip(before, after))
        return type(before) is type(after) and bool(before == after)

    def put(self, path: str, before: Any, after: Any) -> None:
        place, _, attribute = path.rpartition(".")
        if attribute == "disable":
            logging.Logger.manager.__dict__["_disable"] = before
        else:
            logger = next(
                one
                for name, one in [("", logging.root), *logging.Logger.manager.loggerDict.items()]
                if place == (f"logging.getLogger({name!r})" if name else "logging.root")
            )
            inside = logger_dict(logger)
            old = self.DEFAULTS[attribute] if before is ABSENT else before
            if type(old) is list:
                ours = [one for one in inside[attribute] if is_framework(module_of(type(one)))]
                inside[attribute][:] = [*old, *ours]
            else:
                inside[attribute] = old
        clear: Any = getattr(logging.Logger.manager, "_clear_cache", None)
        if clear is not None:
            clear()


class ContextVariables(Probe):
    kind = "context-variable"

    def take(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        self._variables: Dict[str, Any] = getattr(self, "_variables", {})
        for variable, value in contextvars.copy_context().items():
            if variable.name != "decimal_context":
                name = variable.name
                while self._variables.get(name, variable) is not variable:
                    name += "'"
                self._variables[name], found[name] = variable, value
        return found

    def is_same(self, before: Any, after: Any) -> bool:
        return before is after

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not ABSENT  # Nothing can take the value of a variable away.

    def put(self, path: str, before: Any, after: Any) -> None:
        self._variables[path].set(before)

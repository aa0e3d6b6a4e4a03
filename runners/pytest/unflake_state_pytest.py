"""The things that pytest itself keeps alive between tests: wide fixtures, and the values of parameters."""

import os.path
import pathlib
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Dict, Iterator, List, Optional

from unflake_state_nodes import Mapping, Node
from unflake_state_objects import Start
from unflake_state_values import ATOM_IDS, module_of
from unflake_state_walk import is_framework


def session_of(config: Any) -> Any:
    """The session, once there is one."""
    return config.pluginmanager.getplugin("session")


def live_fixtures(session: Any) -> Dict[str, Any]:
    """The values of fixtures that are wider than one test and alive, by how they are called."""
    return {path: one.cached_result[0] for path, one in live_definitions(session).items()}


def live_definitions(session: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for name, definitions in fixture_definitions(getattr(session, "_fixturemanager", None)).items():
        for definition in definitions:
            result = getattr(definition, "cached_result", None)
            if result is None or result[2] is not None or definition.scope == "function":
                continue
            function = function_of(definition)
            if is_framework(str(function.__module__ if function else module_of(type(definition.func)))):
                continue
            place = f" of {definition.baseid}" if len(definitions) > 1 and definition.baseid else ""
            found[f"fixture {name}{place}"] = definition
    return found


def is_telling(value: Any) -> bool:
    """Whether a fixture is worth naming: what one that gives a mere number or text did beside that is
    seen elsewhere, but what it gives the path of lives as long as it does.
    """
    if type(value) is str:
        return os.path.isabs(value) and os.path.exists(value)
    return issubclass(type(value), pathlib.PosixPath) or id(type(value)) not in ATOM_IDS


def users_of(session: Any, path: str) -> List[str]:
    """The fixtures that are alive and need one: they end with it."""
    name = path.split(" ")[1]
    every = live_definitions(session)
    return [other for other, definition in every.items() if name in definition.argnames and other != path]


def fixture_places(session: Any) -> Dict[str, Dict[str, Any]]:
    """The places where the fixtures that are alive are defined."""
    found = {}
    for path, definition in live_definitions(session).items():
        function = function_of(definition)
        if function is not None:
            code = function.__code__
            place = {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_name}
            found[path] = place
    return found


def function_of(definition: Any) -> Any:
    """The function of a fixture, if it is one and no other thing that can be called."""
    function = definition.func
    if type(function) is MethodType:
        function = function.__func__
    return function if type(function) is FunctionType else None


def end_fixture(session: Any, path: str) -> None:
    """Tears a fixture down, and those that need it, so that the next test sets it up anew."""
    definition = live_definitions(session).get(path)
    if definition is None:
        return  # It ended with another that it needs.
    state = session._setupstate
    if hasattr(state, "stack") and type(state.stack) is dict:
        lists = [finalizers for finalizers, _ in state.stack.values()]
    else:
        lists = list(state._finalizers.values())  # pytest 6
    for finalizers in lists:
        for finalizer in finalizers:
            if ends(finalizer, definition):
                finalizers.remove(finalizer)
                finalizer()
                return
    raise LookupError(f"nothing ends {path}")


def ends(finalizer: Any, definition: Any) -> bool:
    """Whether a finalizer of pytest's calls the `finish` of a fixture."""
    if type(finalizer) is partial:
        return getattr(finalizer.func, "__self__", None) is definition
    if type(finalizer) is not FunctionType or "finish" not in finalizer.__code__.co_names:
        return False
    return any(cell.cell_contents is definition for cell in finalizer.__closure__ or ())  # pytest 7


def fixture_definitions(manager: Any) -> Dict[str, List[Any]]:
    """All fixtures by name, wherever this version of pytest keeps them."""
    found: Dict[str, List[Any]] = {}
    for table in ("_arg2fixturedefs", "_arg2node2fixturedefs", "_arg2nodeid2fixturedefs"):
        for name, definitions in list(getattr(manager, table, {}).items()):
            lists = definitions.values() if type(definitions) is dict else [definitions]
            found.setdefault(name, []).extend(one for some in lists for one in some)
    return found


def fixture_start(fixtures: Dict[str, Any]) -> Node:
    return Start("fixture", "", fixtures)


class Parameters(Mapping):
    """The values that a parametrised test is called with."""

    __slots__ = ()
    kind = "parameter"

    def own_path(self) -> str:
        return ""

    def write(self, label: Any) -> str:
        return f"parameter {label} of {self.label}"


def parameter_starts(session: Any) -> Iterator[Node]:
    items: List[Any] = getattr(session, "items", None) or []
    for item in items:
        callspec: Optional[Any] = item.__dict__.get("callspec")
        values = getattr(callspec, "params", None)
        if type(values) is dict and not all(id(type(value)) in ATOM_IDS for value in values.values()):
            yield Parameters(values, None, item.nodeid)

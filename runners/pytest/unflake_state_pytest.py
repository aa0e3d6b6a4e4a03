"""What pytest itself keeps alive between tests: wide fixtures, and the values of parameters."""

from typing import Any, Dict, Iterator, List, Optional

from unflake_state_nodes import Mapping, Node
from unflake_state_objects import Start
from unflake_state_values import ATOM_IDS
from unflake_state_walk import is_framework


def session_of(config: Any) -> Any:
    """The session, once there is one."""
    return config.pluginmanager.getplugin("session")


def live_fixtures(session: Any) -> Dict[str, Any]:
    """The values of fixtures that are wider than one test and alive, by how they are called."""
    found: Dict[str, Any] = {}
    for name, definitions in fixture_definitions(getattr(session, "_fixturemanager", None)).items():
        for definition in definitions:
            result = getattr(definition, "cached_result", None)
            if result is None or result[2] is not None or definition.scope == "function":
                continue
            if is_framework(str(getattr(definition.func, "__module__", ""))):
                continue
            place = f" of {definition.baseid}" if len(definitions) > 1 and definition.baseid else ""
            found[f"fixture {name}{place}"] = result[0]
    return found


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

    def path(self) -> str:
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

"""The place where a piece was written: the project's line that was running when it changed first.

A tracer looks at the pieces after every line of the project's files. What a library writes is blamed
on the line of the project that called it.
"""

import ast
import sys
import threading
from time import thread_time
from typing import Any, Callable, Dict, List, Optional

from unflake_channel import Message
from unflake_state import State
from unflake_state_nodes import Mapping, Node, Sequence
from unflake_state_objects import Attributes
from unflake_state_probes import Probe
from unflake_state_values import ABSENT, is_same

SECONDS = 5.0  # of the processor may looking take in all
NOWHERE: Message = {"file": None, "line": None, "function": None}
NAMES = ("global", "attribute", "replaced")
HasChanged = Callable[[], bool]


def locate(state: State, keys: List[str], call: Callable[[], Any]) -> List[Message]:
    """Runs `call` traced, after `state.mark()`, and says of each piece that changed where that was.

    A place has `key`, `file`, `line` and `function`; the last three are `None` if it did not change, or
    no line of the project was running. A fixture that came alive is placed where it is defined.
    """
    tracer = Tracer(state.modules.is_project, find_looks(state, keys))
    tracer.run(call)
    defined = state.fixture_places()
    return [{"key": key, **(tracer.places.get(key) or defined.get(key) or NOWHERE)} for key in keys]


class Tracer:
    """Watches the lines of the project, and looks at the pieces after each."""

    def __init__(self, is_project: Callable[[str], bool], looks: Dict[str, HasChanged]) -> None:
        self._is_project, self._looks = is_project, looks
        self._files: Dict[str, bool] = {}
        self._last: Dict[int, Message] = {}
        self._spent = 0.0
        self.places: Dict[str, Message] = {}

    def run(self, call: Callable[[], Any]) -> None:
        before, inherited = sys.gettrace(), getattr(threading, "_trace_hook", None)
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            call()
        finally:
            sys.settrace(before)
            threading.settrace(inherited)  # type: ignore[arg-type,unused-ignore]
        self._check(threading.get_ident())

    def _called(self, frame: Any, _event: str, _arg: Any) -> Any:
        """A function begins; those that are not the project's are not followed."""
        file = frame.f_code.co_filename
        is_ours = self._files.get(file)
        if is_ours is None:
            is_ours = self._files[file] = not file.startswith("<") and self._is_project(file)
        if not is_ours or not self._looks:
            return None
        self._check(threading.get_ident())
        return self._stepped

    def _stepped(self, frame: Any, event: str, _arg: Any) -> Any:
        """A line of the project is about to run, or a function of it ends."""
        thread = threading.get_ident()
        self._check(thread)
        if event == "return":
            frame = self._caller(frame)
        if frame is not None:
            code = frame.f_code
            self._last[thread] = {
                "file": code.co_filename,
                "line": frame.f_lineno,
                "function": code.co_name,
            }
        return self._stepped if self._looks else None

    def _caller(self, frame: Any) -> Any:
        """The frame of the project that goes on when this one ends."""
        frame = frame.f_back
        while frame is not None and not self._files.get(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def _check(self, thread: int) -> None:
        """Looks at each piece; one that has changed is known, and not looked at again."""
        start = thread_time()
        for key, has_changed in list(self._looks.items()):
            try:
                is_changed = has_changed()
            except Exception:  # In the middle of a change it may be in no state to be looked at.
                continue
            if is_changed:
                del self._looks[key]
                place = self._last.get(thread)
                if place is not None:
                    self.places[key] = place
        self._spent += thread_time() - start
        if self._spent > SECONDS:
            self._looks.clear()


# --- from a key to a way of looking -------------------------------------------------------------


def find_looks(state: State, keys: List[str]) -> Dict[str, HasChanged]:
    """The ways to see that pieces have changed. Keys that name nothing of this VM are left out."""
    looks: Dict[str, HasChanged] = {}
    nodes = nodes_by_path(state.nodes, [key.partition(":")[2] for key in keys])
    for key in keys:
        kind, _, path = key.partition(":")
        probes = [(probe, table) for probe, table in state.tables if probe.kind == kind]
        owners = [(probe, table) for probe, table in probes if path in table]
        found = None if owners else node_look(nodes, kind, path)
        if found is not None:
            looks[key] = found
        elif probes:
            looks[key] = any_of([probe_look(probe, table, path) for probe, table in owners or probes])
    return looks


def any_of(looks: List[HasChanged]) -> HasChanged:
    return looks[0] if len(looks) == 1 else lambda: any(has_changed() for has_changed in looks)


def probe_look(probe: Probe, table: Dict[str, Any], path: str) -> HasChanged:
    before = table.get(path, ABSENT)

    def has_changed() -> bool:
        after = probe.look(path)
        if before is ABSENT or after is ABSENT:
            return before is not after
        return not probe.is_same(before, after)

    return has_changed


def node_look(nodes: Dict[str, List[Node]], kind: str, path: str) -> Optional[HasChanged]:
    """Looks into the thing itself, or at what the nearest node on its way has under the rest."""
    looks = [contents_look(node) for node in nodes.get(path, []) if not issubclass(type(node), Attributes)]
    if kind in NAMES:
        looks = []
    for size in range(len(path) - 1, -1, -1):
        for node in nodes.get(path[:size], []):
            label = find_label(node, path[size:])
            if label is not ABSENT:
                return any_of([*looks, label_look(node, label)])
    return any_of(looks) if looks else None


def contents_look(node: Node) -> HasChanged:
    return lambda: not node.is_unchanged() and bool(node.changes())


def label_look(node: Node, label: Any) -> HasChanged:
    before = node.look(label)
    return lambda: not is_same(before, node.look(label))


def nodes_by_path(nodes: List[Node], paths: List[str]) -> Dict[str, List[Node]]:
    """The nodes on the way to one of the paths."""
    found: Dict[str, List[Node]] = {}
    texts: Dict[int, Optional[str]] = {}
    for node in nodes:
        text: Optional[str]
        if node.parent is None or node.has_own_path():
            text = node.own_path()
        else:
            above = texts.get(id(node.parent))
            text = None if above is None else above + node.parent.write(node.label)
        if text is not None and not any(path.startswith(text) for path in paths):
            text = None
        texts[id(node)] = text
        if text is not None:
            found.setdefault(text, []).append(node)
    return found


def find_label(node: Node, text: str) -> Any:
    """The label that reads like this, whether it is there yet or not."""
    if type(node.saved) is dict:
        for label in node.saved:
            if node.write(label) == text:
                return label
    if issubclass(type(node), Attributes):
        return text[1:] if text.startswith(".") and text[1:].isidentifier() else ABSENT
    if issubclass(type(node), (Mapping, Sequence)) and text.startswith("["):
        try:
            label = ast.literal_eval(text[1:-1])
        except (ValueError, SyntaxError):
            return ABSENT
        return label if node.write(label) == text else ABSENT
    return ABSENT

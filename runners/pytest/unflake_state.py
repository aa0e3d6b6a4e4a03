"""The changes of a test: a snapshot of the process before it, and the differences after it.

The snapshot holds references and shallow copies, so it is quick and can put things back. It runs no
code of the project: `unflake_state_values` says how. Its parts are in modules of their own: objects of
the project (`_walk`), other people's modules (`_modules`), the process and the interpreter's settings
(`_process`, `_settings`), files (`_files`), and what pytest keeps alive (`_pytest`).

A piece is one difference. Its `key` is made of its kind and its path, so it names the same piece in
every VM that ran the same tests. The kinds:

`global`, `attribute`, `item`   a value that the project's modules hold, by its path
`replaced`                      a function, class or other code that something else stands for now
`fixture`, `parameter`          what pytest keeps alive: a wide fixture, the value of a parameter
`cache`, `iterator`, `stream`   a cache of `functools`, how far an iterator is, a stream in memory
`random`, `lock`                the state of a random generator, whether a lock is held
`module`                        an entry of `sys.modules`
`context-variable`, `environment`, `folder`, `search-path`, `interpreter`, `locale`, `time-zone`,
`logging`, `warnings`, `signal`, `descriptor`, `port`, `thread`, `process`, `file`

What objects hold lives on as long as the snapshot does.
"""

import gc
from functools import partial
from time import perf_counter, thread_time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from unflake_channel import Message
from unflake_state_files import Files
from unflake_state_modules import OURS, PROJECT, Foreign, Modules, owner_of
from unflake_state_nodes import WHOLE, Change, Node
from unflake_state_objects import Globals, Start
from unflake_state_probes import Probe
from unflake_state_process import process_probes
from unflake_state_pytest import (
    end_fixture,
    fixture_places,
    fixture_start,
    is_telling,
    live_fixtures,
    parameter_starts,
    session_of,
    users_of,
)
from unflake_state_settings import Quiet, setting_probes
from unflake_state_values import ABSENT, TEXT_LIMIT, cut, is_code, is_mock, module_dict, show_change
from unflake_state_walk import STEPS, Walk

# Seconds of the processor: a busy machine must not decide what is seen.
MARK_SECONDS, MARK_OBJECTS = 2.0, 1_000_000
# Many tests import something, and it seldom matters: it is told last.
LAST = "module"


class Found(NamedTuple):
    """A piece, and how it is put back."""

    piece: Message
    put: List[Callable[[], None]]


class State:
    """A snapshot, and what is different from it."""

    def __init__(
        self,
        session_config: Any,
        roots: List[str],
        files: bool = True,
        seconds: float = MARK_SECONDS,
        objects: int = MARK_OBJECTS,
    ) -> None:
        self._config, self._seconds, self._objects = session_config, seconds, objects
        self.modules = Modules(roots)
        self.probes: List[Probe] = [*process_probes(), *setting_probes(self.modules)]
        if files:
            self.probes.append(Files(str(session_config.rootpath)))
        self.nodes: List[Node] = []
        self.fixtures: Dict[str, Any] = {}
        self.tables: List[Tuple[Probe, Dict[str, Any]]] = []
        self._found: Dict[str, Found] = {}

    # --- the snapshot ---------------------------------------------------------------------------

    def mark(self) -> Message:
        """Remembers how everything is now."""
        start = perf_counter()
        self._found = {}
        with Quiet():
            unseen, count = self._mark_heap(thread_time() + self._seconds)
            self.tables = []
            for probe in self.probes:
                self._take(probe, unseen)
        return {"seconds": perf_counter() - start, "objects": count, "unseen": unseen}

    def _mark_heap(self, until: float) -> Tuple[List[str], int]:
        session = session_of(self._config)
        every = list(self.modules.every())
        known = {name for name, _, whose in every if whose == PROJECT}
        walk = Walk(known, until, self._objects)
        # Conftests of one name push each other out of `sys.modules`.
        plugins = [plugin for plugin in self._config.pluginmanager.get_plugins() if type(plugin) is type(gc)]
        starts: List[Node] = [
            Globals(module_dict(module), None, name) for name, module, whose in every if whose == PROJECT
        ]
        for plugin in plugins:
            name = str(module_dict(plugin).get("__name__"))
            if self.modules.sort(name, plugin) == PROJECT:
                starts.append(Globals(module_dict(plugin), None, name))
        walk.begin(starts)
        self.fixtures = live_fixtures(session)
        walk.begin([fixture_start(self.fixtures), *parameter_starts(session)])
        foreign = Foreign(walk.seen)
        walk.go()
        unseen = walk.unseen()
        for name, module, whose in every:
            if whose in (OURS, PROJECT):
                continue
            try:
                foreign.add(name, module, whose)
            except Exception as error:
                unseen.append(f"module {name}: {type(error).__name__}: {error}"[:200])
        self.nodes = walk.nodes + foreign.nodes
        return unseen, len(walk.seen)

    def _take(self, probe: Probe, unseen: List[str]) -> None:
        try:
            self.tables.append((probe, probe.mark()))
            unseen.extend(probe.unseen)
        except Exception as error:
            unseen.append(f"{probe.kind}: {type(error).__name__}: {error}"[:200])

    # --- the differences ------------------------------------------------------------------------

    def compare(self) -> Message:
        """The differences of the present state from the marked one."""
        start = perf_counter()
        self._found = {}
        unseen: List[str] = []
        with Quiet():
            # The process first: what follows may open files and load modules.
            for probe, before in self.tables:
                try:
                    self._compare_table(probe, before)
                except Exception as error:
                    unseen.append(f"{probe.kind}: {type(error).__name__}: {error}"[:200])
            self._compare_fixtures()
            self._compare_nodes(thread_time() + self._seconds, unseen)
        pieces = sorted(
            (found.piece for found in self._found.values()), key=lambda piece: piece["kind"] == LAST
        )
        return {"pieces": pieces, "unseen": unseen, "seconds": perf_counter() - start}

    def _compare_table(self, probe: Probe, before: Dict[str, Any]) -> None:
        after = probe.take()
        changes = {}
        for path in [*before, *(path for path in after if path not in before)]:
            old, new = before.get(path, ABSENT), after.get(path, ABSENT)
            if old is not new and (old is ABSENT or new is ABSENT or not probe.is_same(old, new)):
                changes[path] = (old, new)
        for path, (old, new) in probe.group(changes).items():
            if old is ABSENT or new is ABSENT:
                texts = (
                    None if old is ABSENT else probe.show(old),
                    None if new is ABSENT else probe.show(new),
                )
            else:
                texts = probe.show_both(old, new)
            if texts[0] == texts[1] and texts[1] is not None:
                texts = (texts[0], cut(texts[1], TEXT_LIMIT - 14) + " (another one)")
            piece = self._make_piece(
                probe.kind, path, texts, probe.can_put(path, old, new), probe.write(path)
            )
            self._add(piece, partial(probe.put, path, old, new))

    def _compare_fixtures(self) -> None:
        session = session_of(self._config)
        now = live_fixtures(session)
        for path in sorted({*self.fixtures, *now}):
            old, new = self.fixtures.get(path, ABSENT), now.get(path, ABSENT)
            if old is not new and any(one is not ABSENT and is_telling(one) for one in (old, new)):
                piece = self._make_piece("fixture", path, show_change(old, new), old is ABSENT)
                piece["ends"] = [f"fixture:{other}" for other in users_of(session, path)]
                self._add(piece, partial(end_fixture, session, path))

    def fixture_places(self) -> Dict[str, Message]:
        """The places where the wide fixtures are defined that are alive now and were not, by their keys."""
        places = fixture_places(session_of(self._config))
        return {f"fixture:{path}": place for path, place in places.items() if path not in self.fixtures}

    def _compare_nodes(self, until: float, unseen: List[str]) -> None:
        above: Dict[Tuple[int, Any], Found] = {}
        for position, node in enumerate(self.nodes):
            if position % STEPS == 0 and thread_time() > until:
                unseen.append(
                    f"changes in {len(self.nodes) - position:,} of {len(self.nodes):,} objects: out of time"
                )
                return
            try:
                if node.is_unchanged():
                    continue
                changes = node.changes()
            except Exception as error:
                unseen.append(f"{node.path()}: {type(error).__name__}: {error}"[:200])
                continue
            owner = replaced_above(node, above) if changes else None
            for change in changes:
                put = put_back(node, change)
                if owner is not None:
                    # It is inside something that is not there any more, and comes back with it.
                    owner.put.append(put)
                    continue
                found = self._add(self._piece_of(node, change), put)
                if change is not WHOLE:
                    above[id(node), mark_of(change.label)] = found

    def _piece_of(self, node: Node, change: Change) -> Message:
        kind, path = node.kind, node.path()
        texts = node.texts() if change is WHOLE else show_change(change.before, change.after)
        if change is not WHOLE:
            path += node.write(change.label)
            if kind in ("global", "attribute") and is_code(change.before):
                kind = "replaced"
            elif kind == "replaced" and not is_code(change.before) and change.before is not ABSENT:
                kind = "global" if type(node.thing) is dict else "attribute"
        start = node
        while start.parent is not None:
            start = start.parent
        if type(start) is Start or start.kind == "parameter":
            kind = (
                start.kind
                if node.kind not in ("cache", "iterator", "stream", "random", "lock")
                else node.kind
            )
        piece = self._make_piece(kind, path, texts, node.can_put())
        piece["owner"], piece["mock"] = owner_of(node), change is not WHOLE and is_mock(change.after)
        return piece

    def _make_piece(
        self,
        kind: str,
        path: str,
        texts: Tuple[Optional[str], Optional[str]],
        restorable: bool,
        name: str = "",
    ) -> Message:
        key = f"{kind}:{name or path}"
        number = 2
        while key in self._found:
            key = f"{kind}:{name or path}#{number}"
            number += 1
        return {
            "key": key,
            "kind": kind,
            "path": path,
            "before": texts[0],
            "after": texts[1],
            "owner": None,
            "mock": False,
            "restorable": restorable,
            "ends": [],
        }

    def _add(self, piece: Message, put: Optional[Callable[[], None]] = None) -> Found:
        found = self._found[piece["key"]] = Found(piece, [] if put is None else [put])
        return found

    # --- the way back ---------------------------------------------------------------------------

    def restore(self, keys: List[str]) -> List[str]:
        """Puts pieces of the last comparison back; the keys of those that could not be."""
        failed = []
        for key in keys:
            found = self._found.get(key)
            if found is None or not found.piece["restorable"]:
                failed.append(key)
                continue
            try:
                for put in found.put:
                    put()
            except Exception:
                failed.append(key)
        return failed


def mark_of(label: Any) -> Any:
    """A label as part of a key, by identity: its own hash may be the project's."""
    return label if type(label) is int else (id(label),)


def replaced_above(node: Node, above: Dict[Tuple[int, Any], Found]) -> Optional[Found]:
    """The change on the way to a node by which it is not reached any more."""
    visited: Set[int] = set()
    while node.parent is not None and id(node) not in visited:
        visited.add(id(node))
        found = above.get((id(node.parent), mark_of(node.label)))
        if found is not None:
            return found
        node = node.parent
    return None


def put_back(node: Node, change: Change) -> Callable[[], None]:
    if change is WHOLE:
        return node.put_all
    return lambda: node.put(change.label, change.before)

"""Delays at the places where threads and tasks meet, as the driver says.

The project's code is rewritten once more, before the tracer does it: `f(x)` becomes
`AFTER[7, BEFORE[7, f](x)]`, subscripts and not calls, so that the tracer sees nothing of it. Each place that
could have a delay is written down, and those that the driver has named get one. Which, and why, is the
driver's business.
"""

import ast
import builtins
import contextlib
import json
import sys
import threading
from time import sleep
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

import unflake_trace
from unflake_trace_kinds import IO, LOCK, NETWORK, START, WAIT, identify, kind_of
from unflake_trace_sites import LEFT_ALONE

BEFORE, AFTER, ENTER, AWAIT = "@unflake_before", "@unflake_after", "@unflake_enter", "@unflake_await"
# Around these calls the order of threads is decided.
MEETING = frozenset((START, WAIT, LOCK, IO, NETWORK))
# The most delays of one place in one thread: it may be in a loop.
MOST_HITS = 3
# The most seconds, about, by which a thread is delayed in one run: what shows only later is no race.
MOST_LATE = 5.0
# The most places of one run that are reported: a search could not try more.
MOST_POINTS = 2000


class Place(NamedTuple):
    """A place that calls, enters or awaits something."""

    file: str
    line: int
    column: int


class Point(NamedTuple):
    """A place at which a thread can be delayed."""

    thread: str
    file: str
    line: int
    column: int
    moment: str
    callee: str
    is_plain: bool


PLACES: List[Place] = []


class Local(threading.local):
    name: str = ""
    place: str = "?"
    has_entered: bool = False

    def __init__(self) -> None:
        self.started: Dict[str, int] = {}  # How many threads each place has started.


class Delays:
    """Stands before a tracer: what it records has these delays, and a list of the places for them."""

    def __init__(self, tracer: Any, path: str, start: Dict[str, Any]) -> None:
        self._tracer, self._path = tracer, path
        self._seconds: float = start["milliseconds"] / 1000
        self._wanted: Set[Tuple[Any, ...]] = {
            (one["thread"], one["file"], one["line"], one["column"], one["moment"]) for one in start["points"]
        }
        self._met: Dict[Point, int] = {}
        self._late: Dict[str, float] = {}
        self._kinds: Dict[str, int] = {}
        self._callees: Dict[Tuple[int, str], Tuple[str, int]] = {}
        self._names: Dict[int, str] = {}
        self._local = Local()
        self._is_on = False

    def start(self) -> None:
        tracing: Any = unflake_trace
        original = tracing.instrument

        def instrument(tree: ast.Module, file: str) -> None:
            Rewriter(file).visit(tree)
            original(tree, file)

        tracing.instrument = instrument
        hooks = {BEFORE: self.before, AFTER: self.after, ENTER: self.enter, AWAIT: self.waits}
        for name, function in hooks.items():
            setattr(builtins, name, Hook(function))
        self._tracer.start()
        self._follow_threads()

    def _follow_threads(self) -> None:
        started, run = threading.Thread.start, threading.Thread.run

        def start(thread: Any) -> None:
            own, started_there = self._thread(), self._local.started
            place = self._local.place
            started_there[place] = started_there.get(place, 0) + 1
            self._names[id(thread)] = f"{own}/{place}#{started_there[place]}"
            started(thread)

        def entered(thread: Any) -> None:
            target = getattr(thread, "_target", None)
            code = getattr(target, "__code__", None)
            file = self._tracer.inside(code.co_filename) if code else None
            if code is not None and file is not None:
                self._enter(Place(file, code.co_firstlineno, 1), code.co_name)
            run(thread)

        for function, original in ((start, started), (entered, run)):
            function.__name__, function.__qualname__ = original.__name__, original.__qualname__
            function.__module__ = original.__module__
        patched: Any = threading.Thread
        patched.start, patched.run = start, entered

    # --- what rewritten code asks -----------------------------------------------------------------

    def before(self, place: int, function: Any) -> Any:
        if self._is_on:
            module, name, _ = identify(function)
            full = f"{module}.{name}"
            kind = self._kind(full)
            callee = name if module in ("builtins", "?") else full
            thread = self._thread()
            self._callees[place, thread] = (callee, kind)
            self._local.place = f"{PLACES[place].file}:{PLACES[place].line}"
            self._enter(PLACES[place], callee)
            self._meet(thread, PLACES[place], "before", (callee, kind))
        return function

    def after(self, place: int, value: Any) -> Any:
        if self._is_on:
            thread = self._thread()
            known = self._callees.get((place, thread))
            if known is not None and known[1] in MEETING:
                self._meet(thread, PLACES[place], "after", known)
        return value

    def enter(self, place: int, manager: Any) -> Any:
        """A lock that a `with` takes."""
        if self._is_on:
            module, name, _ = identify(type(manager))
            kind = self._kind(f"{module}.{name}.__enter__")
            if kind == LOCK:
                self._meet(self._thread(), PLACES[place], "before", (f"{module}.{name}.__enter__", kind))
        return manager

    def waits(self, place: int, value: Any) -> Any:
        """Something that a task awaits: the delay lets the other tasks run meanwhile."""
        asyncio = sys.modules.get("asyncio")
        if not self._is_on or asyncio is None or asyncio._get_running_loop() is None:
            return value
        task = asyncio.current_task()
        routine = task.get_coro() if task else None
        thread = f"{self._thread()}/{getattr(routine, '__qualname__', 'task')}"
        callee = "await " + str(getattr(value, "__qualname__", type(value).__name__))
        if not self._is_wanted(thread, PLACES[place], "before", (callee, WAIT)):
            return value
        seconds = self._seconds

        async def late() -> Any:
            await asyncio.sleep(seconds)
            return await value

        delayed: Any = late()
        delayed.__qualname__ = getattr(value, "__qualname__", type(value).__name__)
        return delayed

    # --- delays -----------------------------------------------------------------------------------

    def _kind(self, name: str) -> int:
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = kind_of(name)
        return kind

    def _thread(self) -> str:
        local = self._local
        if not local.name:
            own = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
            is_main = threading.get_ident() == threading.main_thread().ident
            local.name = "main" if is_main else self._names.get(id(own), "?")
        return local.name

    def _enter(self, place: Place, callee: str) -> None:
        """A thread does its first thing."""
        thread = self._thread()
        if self._is_on and not self._local.has_entered:
            self._local.has_entered = True
            if thread != "main":
                self._meet(thread, place, "entry", (callee, START))

    def _meet(self, thread: str, place: Place, moment: str, called: Tuple[str, int]) -> None:
        if called[1] not in MEETING and len(threading._active) < 2:  # type: ignore[attr-defined]
            return  # Nobody is there to be overtaken by.
        if self._is_wanted(thread, place, moment, called):
            sleep(self._seconds)

    def _is_wanted(self, thread: str, place: Place, moment: str, called: Tuple[str, int]) -> bool:
        point = Point(thread, *place, moment, called[0], called[1] not in MEETING)
        hits = self._met.get(point, 0)
        if hits == 0 and len(self._met) >= MOST_POINTS:
            return False
        self._met[point] = hits + 1
        if hits >= MOST_HITS or (thread, *place, moment) not in self._wanted:
            return False
        late = self._late.get(thread, 0.0)
        self._late[thread] = late + self._seconds
        return late < MOST_LATE

    # --- the tracer's part ------------------------------------------------------------------------

    @contextlib.contextmanager
    def recording(self, item: Any) -> Iterator[None]:
        with self._tracer.recording(item):
            self._met, self._late, self._is_on = {}, {}, True
            try:
                yield
            finally:
                self._is_on = False
        points = [point._asdict() for point in list(self._met)]
        with open(self._path, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(points, file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracer, name)


class Hook:
    """A function that is called by a subscript."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, key: Tuple[int, Any]) -> Any:
        return self._function(*key)


class Rewriter(ast.NodeTransformer):
    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in LEFT_ALONE:
            return node
        if is_of_pytest(node.func) or any(is_of_pytest(one) for one in node.args):
            return node
        number = self._number(node)
        node.func = asked(BEFORE, number, node.func)
        return asked(AFTER, number, node)

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = asked(ENTER, self._number(item.context_expr), item.context_expr)
        return node

    def visit_Await(self, node: ast.Await) -> Any:
        self.generic_visit(node)
        node.value = asked(AWAIT, self._number(node), node.value)
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        return node  # Annotations may be turned back into text.

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def _number(self, node: Any) -> int:
        PLACES.append(Place(self._file, node.lineno, node.col_offset + 1))
        return len(PLACES) - 1


def asked(hook: str, number: int, value: ast.expr) -> ast.Subscript:
    key = ast.Tuple([ast.Constant(number), value], ast.Load())
    index: Any = key if sys.version_info >= (3, 9) else ast.Index(key)  # type: ignore[call-arg,unused-ignore]
    made = ast.Subscript(ast.Name(hook, ast.Load()), index, ast.Load())
    for one in ast.walk(made):
        if not hasattr(one, "lineno") and isinstance(one, ast.expr):
            ast.copy_location(one, value)
    return made


def is_of_pytest(node: ast.AST) -> bool:
    """What pytest has put into an assertion."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return isinstance(node, ast.Name) and node.id.startswith(("@pytest", "@py_"))

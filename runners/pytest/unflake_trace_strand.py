"""The functions that rewritten code calls, made anew for each thread.

Everything is in closures: they are quick, each thread has its own and needs no lock, and a test that puts
other functions in the place of clocks does not find ours.
"""

import operator
import sys
import time
import types
from typing import Any, Callable, Dict, Iterator, List, Tuple

from unflake_state_values import HEAP_TYPE, class_flags
from unflake_trace_file import CAUGHT, LINE, TASK
from unflake_trace_kinds import PLAIN, find_attribute, identify
from unflake_trace_sites import FILES, PLACES
from unflake_trace_values import LARGEST, SMALLEST, VALUE_LIMIT, Values, is_global, is_lasting

# The most calls of one place in one thread that are reported one by one, and how many more if the
# outside world can change their results.
MOST_PLAIN, MORE_OTHERS = 1_000, 9_000
# The most exceptions of one thread that are reported, and the most frames of each.
MOST_CAUGHT, MOST_LINES = 10_000, 40
# The nanoseconds between two looks at whether there is enough to write.
PAUSE = 20_000_000
NOTHING = object()
# These may end the process at once: what was told until then is written before, each time.
ENDINGS = frozenset(("posix.kill", "posix.killpg", "posix.abort", "_signal.raise_signal"))
# A mark in the place of a site: the call is not reported.
SILENT = -1
# The clock, kept in a tuple: tools that freeze time in all modules do not find it there.
CLOCK = (time.perf_counter_ns,)


class Memory:
    """The facts that a thread knows about places."""

    def __init__(self) -> None:
        # The last function called at each place, its site, and the most calls of it that are reported.
        self.last: List[Any] = []
        self.sites: List[int] = []
        self.limits: List[int] = []
        # The sites at a place, by the addresses of what is called, which is kept for that.
        self.known: Dict[Tuple[int, int], int] = {}
        self.kept: List[Any] = []
        self.grow()

    def grow(self) -> int:
        """Makes room for places of modules that were loaded meanwhile; for how many."""
        more = len(PLACES) - len(self.last)
        self.last.extend([None] * more)
        self.sites.extend([0] * more)
        self.limits.extend([MOST_PLAIN] * more)
        return more


class Strand:
    """A thread of the project's: its events that are not yet written, and what is known of its places."""

    def __init__(self, calls: Any, name: str, number: int, memory: Memory) -> None:
        self.calls, self.name, self.number, self._memory = calls, name, number, memory
        self.events: List[int] = []
        self.started: Dict[str, int] = {}  # How many threads each place has started.
        memory.grow()
        self.last, self.sites, self._known = memory.last, memory.sites, memory.known
        self.left = memory.limits[:]  # How many calls of each place are still told.
        # Of places that were called too often: what they returned last, how often that was something
        # else than before, and the code of the first such value.
        self.repeated: List[Any] = [NOTHING] * len(self.left)
        self.changes: Dict[int, Tuple[int, int]] = {}
        self.caught = MOST_CAUGHT

    def grow(self) -> None:
        """Makes room for places of modules that were loaded meanwhile."""
        self._memory.grow()
        more = len(PLACES) - len(self.left)
        self.repeated.extend([NOTHING] * more)
        self.left.extend([MOST_PLAIN] * more)

    def find_function(self, place: int, function: Any) -> Tuple[int, int]:
        """The site of a function that is called at a place, and its receiver."""
        known = self._known.get((place, id(function)))
        if known is not None:
            self.last[place], self.sites[place] = function, known
            return known, 0
        module, name, receiver = identify(function)
        site = self.sites[place] = self._find(place, module, name)
        is_lasting = receiver is None and is_lasting_function(function) and not self._may_end(module, name)
        self._remember(place, function if is_lasting else None, site)
        return site, 0 if receiver is None else id(receiver)

    def find_method(self, place: int, receiver: Any) -> Tuple[int, int]:
        """The site of a receiver's attribute that is called at a place, and the receiver."""
        kind = type(receiver)
        known = self._known.get((place, id(kind)))
        if known is not None:
            self.last[place], self.sites[place] = kind, known
            return known, id(receiver)
        module, name = find_attribute(receiver, PLACES[place].attribute)
        site = self.sites[place] = self._find(place, module, name)
        if self._may_end(module, name):
            self.last[place] = None
            return site, 0
        is_module = kind is types.ModuleType
        if is_module or issubclass(kind, type):
            # By itself: others of its kind have other attributes.
            self.last[place] = receiver if is_module or is_lasting(receiver) else None
            return site, 0
        self._remember(place, kind if is_lasting(kind) else None, site)
        return site, id(receiver)

    def _remember(self, place: int, called: Any, site: int) -> None:
        """Next time it is known at once; `None` is not."""
        self.last[place] = called
        if called is not None:
            self._known[place, id(called)] = site
            self._memory.kept.append(called)

    def _may_end(self, module: str, name: str) -> bool:
        """Whether the call that follows may be the last; then everything is written."""
        if f"{module}.{name}" not in ENDINGS:
            return False
        self.calls.write(self, everything=True)
        return True

    def _find(self, place: int, module: str, name: str) -> int:
        site, kind = self.calls.site(place, module, name)
        if kind == PLAIN and PLACES[place].is_library:
            # It only has the name of something else: nothing of this place is told, now or later.
            self.left[place] = self._memory.limits[place] = 0
            return SILENT
        if kind != PLAIN and self._memory.limits[place] == MOST_PLAIN:
            self._memory.limits[place] += MORE_OTHERS
            self.left[place] += MORE_OTHERS
        return int(site)

    def note_hot(self, place: int, value: Any) -> None:
        """A call that is only counted has returned something else than the one before, perhaps."""
        kind, before = type(value), self.repeated[place]
        is_simple = kind is int or kind is str or kind is bool or kind is float or value is None
        if not is_simple or (kind is type(before) and value == before):
            return
        self.repeated[place] = value if kind is not str or len(value) <= VALUE_LIMIT else None
        if before is not NOTHING:
            changes, code = self.changes.get(place, (0, 0))
            self.changes[place] = (changes + 1, code or self.calls.show(value))

    def hot(self) -> Iterator[Tuple[int, int, int, int]]:
        """The places that were called too often: site, further calls, changes of the value, the first."""
        if min(self.left, default=0) >= 0:
            return
        for place, left in enumerate(self.left):
            if left < 0 and not PLACES[place].is_library:
                yield (self.sites[place], -left, *self.changes.get(place, (0, 0)))


def make_beginnings(strand: Strand) -> Dict[str, Callable[..., Any]]:
    """The functions that tell of a call before it is made."""
    clock, extend, kind_of, address = CLOCK[0], strand.events.extend, type, id
    last, sites, left = strand.last, strand.sites, strand.left
    find_function, find_method = strand.find_function, strand.find_method

    def begin(place: int, function: Any) -> int:
        more = left[place]
        if more > 0:
            if function is last[place]:
                left[place] = more - 1
                now = clock()
                extend((sites[place], now, 0))
                return now
            return told(place, *find_function(place, function))
        left[place] = more - 1
        return ~place

    def reach(place: int, receiver: Any) -> int:
        more = left[place]
        if more > 0:
            if kind_of(receiver) is last[place]:
                left[place] = more - 1
                now = clock()
                extend((sites[place], now, address(receiver)))
                return now
            if receiver is last[place]:
                return told(place, sites[place], 0)
            return told(place, *find_method(place, receiver))
        left[place] = more - 1
        return ~place

    def told(place: int, site: int, receiver: int) -> int:
        if site == SILENT:
            return 0
        left[place] -= 1
        now = clock()
        extend((site, now, receiver))
        return now

    def when(place: int) -> int:
        return clock() if left[place] > 0 else ~place

    def call(place: int, function: Any) -> Any:
        if left[place] <= 0:
            left[place] -= 1
            return function
        if function is last[place]:
            told(place, sites[place], 0)
        else:
            told(place, *find_function(place, function))
        if PLACES[place].is_async:
            tasked(1)
        return function

    def tasked(begun: int) -> int:
        if begun > 0:
            task = strand.calls.task(strand)
            if task != strand.number:
                extend((TASK, task, 0))
        return begun

    return {"begin": begin, "reach": reach, "when": when, "call": call, "tasked": tasked}


def make_end(strand: Strand, values: Values) -> Callable[[int, Any], Any]:
    """The function that tells of a call that has returned."""
    clock, extend, kind_of, address, size = CLOCK[0], strand.events.extend, type, id, len
    get_string, string, get_fixed, other = values.strings.get, values.string, values.fixed.get, values.other
    none, yes, no = (values.code(text) for text in ("None", "True", "False"))
    note_hot, repeated, write, due = strand.note_hot, strand.repeated, strand.calls.write, 0

    def end(begun: int, value: Any) -> Any:
        nonlocal due
        if begun > 0:
            now = clock()
            if value is None:
                code = none
            else:
                kind = kind_of(value)
                if kind is int and SMALLEST < value < LARGEST:
                    code = value * 2 + 1
                elif kind is str:
                    code = (size(value) <= VALUE_LIMIT and get_string(value)) or string(value)
                elif kind is bool:
                    code = yes if value else no
                else:
                    code = get_fixed(address(kind)) or other(kind, value)
            extend((begun, now, code))
            if now > due:
                due = now + PAUSE
                write(strand)
        elif begun and value is not repeated[~begun]:
            note_hot(~begun, value)
        return value

    return end


def make_caught(strand: Strand) -> Callable[[], None]:
    """The function that tells of the exception that is being handled, and the calls that it has ended."""
    clock, extend, exc_info = CLOCK[0], strand.events.extend, sys.exc_info
    number, error_code = strand.calls.number, strand.calls.error

    def caught(error: Any = None) -> None:
        if strand.caught <= 0:
            return
        strand.caught -= 1
        error = error or exc_info()[1]
        if error is None:
            return
        events, trace = [], error.__traceback__
        while trace is not None:
            file = FILES.get(trace.tb_frame.f_code.co_filename)
            if file is not None:
                events.append((LINE, trace.tb_lineno, number(file)))
            trace = trace.tb_next
        lines = [one for event in reversed(events[-MOST_LINES:]) for one in event]
        extend((CAUGHT, clock(), error_code(error), *lines))

    return caught


def make_waits(strand: Strand) -> Dict[str, Callable[[int, Any], Any]]:
    """The functions that tell of waiting for something: others run meanwhile."""
    clock, calls, get_frame = CLOCK[0], strand.calls, sys._getframe
    open_waits: Dict[Tuple[int, int], Tuple[int, int, int]] = {}

    def waits(place: int, value: Any) -> Any:
        if strand.left[place] > 0:
            strand.left[place] -= 1
            site = calls.wait_site(place, value)
            open_waits[id(get_frame(1)), place] = (site, calls.task(strand), clock())
        return value

    def waited(place: int, value: Any) -> Any:
        found = open_waits.pop((id(get_frame(1)), place), None)
        if found is not None:
            calls.put_call(*found, clock(), value)
        return value

    return {"waits": waits, "waited": waited}


def make_each(strand: Strand) -> Callable[[int, Any], Any]:
    """The function that tells in which order a set is about to be gone through."""
    calls, size = strand.calls, len

    def each(place: int, value: Any) -> Any:
        kind = type(value)
        if (kind is set or kind is frozenset) and size(value) > 1 and strand.left[place] > 0:
            strand.left[place] -= 1
            calls.put_order(place, kind.__name__, calls.task(strand), value)
        return value

    return each


def make_functions(strand: Strand, values: Values) -> Dict[str, Callable[..., Any]]:
    """All that rewritten code calls in one thread."""
    found: Dict[str, Callable[..., Any]] = {**make_beginnings(strand), **make_waits(strand)}
    found.update(end=make_end(strand, values), caught=make_caught(strand), each=make_each(strand))
    return found


def is_lasting_function(function: Any) -> bool:
    """Whether a reference to a function keeps nothing alive that would not live anyway."""
    kind = type(function)
    if kind is types.BuiltinFunctionType:
        return True  # One that has a receiver does not come here.
    if kind is types.FunctionType:
        return is_global(function.__module__, function.__qualname__, function)
    if issubclass(kind, type):
        return not class_flags(function) & HEAP_TYPE or is_lasting(function)
    return False


def quiet() -> Dict[str, Callable[..., Any]]:
    """The functions that rewritten code calls while nothing is recorded: written in C, so they are quick.

    A look-up in an empty `dict` returns the default that it is given; and no number is a function.
    """
    found: Dict[str, Callable[..., Any]] = dict.fromkeys(("call", "end", "waits", "waited", "each"), {}.get)
    found.update(dict.fromkeys(("begin", "reach"), operator.is_))
    found.update(when=callable, tasked=callable, caught=bool)
    return found


def dispatch(find: Callable[[], Any]) -> Dict[str, Callable[..., Any]]:
    """The functions that rewritten code calls if there are several threads: each thread finds its own."""

    def begin(place: int, function: Any) -> int:
        begun: int = find().begin(place, function)
        return begun

    def reach(place: int, receiver: Any) -> int:
        begun: int = find().reach(place, receiver)
        return begun

    def end(begun: int, value: Any) -> Any:
        return find().end(begun, value)

    def later(name: str) -> Callable[..., Any]:
        return lambda *values: getattr(find(), name)(*values)

    found = {name: later(name) for name in quiet()}
    found.update(begin=begin, reach=reach, end=end)
    return found

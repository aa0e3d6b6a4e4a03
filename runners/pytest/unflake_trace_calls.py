"""Records the calls that rewritten code tells of: sites, threads and tasks of one run, and its file."""

import contextlib
import itertools
import os
import sys
import threading
from collections import deque
from contextvars import ContextVar
from types import CoroutineType, ModuleType
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Set, Tuple, Union
from weakref import WeakKeyDictionary

from unflake_state_values import class_name, module_dict
from unflake_trace_children import Birth
from unflake_trace_file import (
    ALIVE,
    CALL,
    CAUGHT,
    CUT,
    END,
    FIELDS,
    HOT,
    ORIGIN,
    PLACE,
    SITE,
    TEXT,
    THREAD,
    Record,
    TraceFile,
)
from unflake_trace_kinds import LEFTOVER, PLAIN, WAIT, kind_of
from unflake_trace_sites import FILES, PLACES, Place
from unflake_trace_strand import CLOCK, Memory, Strand, make_functions
from unflake_trace_values import Values

# The most events that are written: a trace is to be read again, together with a hundred others.
MOST_EVENTS = 4_000_000
# The number of numbers that are collected before they are written.
BATCH = 8_000 * FIELDS
# The functions that are called and their places, by numbers that are the same in each run.
SITES: List[Tuple[int, str, int]] = []
SITE_NUMBERS: Dict[Tuple[int, str, str], Tuple[int, int]] = {}
SITES_LOCK = threading.RLock()
MEMORY, MAIN = Memory(), threading.get_ident()
# The task to which a context belongs: its run, and its number there.
OWNER: ContextVar[Tuple[Any, int]] = ContextVar("unflake", default=(None, 0))
# Who started a thread: by number, or by name if it is of another process.
Parent = Union[int, str, None]


class Calls:
    """The calls of one run.

    Texts, sites and threads go through a queue: a finalizer of the project's can run in the middle of
    anything here, and make calls.
    """

    def __init__(self, path: str, folder: str, birth: Optional[Birth] = None) -> None:
        self._path, self._folder = path, folder
        self._tasks: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._births: Dict[int, Tuple[int, str]] = {}
        self._getpid, self._ident = os.getpid, threading.get_ident
        self._counts: Dict[str, int] = {}
        self.is_cut, self._began = False, CLOCK[0]() if birth is None else birth.began
        if birth is None:
            self._begin_file("main", None).create()
        else:
            self._begin_file(birth.name, birth.parent)
        # Now, because the first frame says which process runs the test.
        self._write_queue()
        with contextlib.suppress(OSError):  # Then there is no trace, which is noticed.
            self._file.flush()

    def _begin_file(self, name: str, parent: Optional[str]) -> TraceFile:
        """Everything that belongs to this process's part of the file."""
        self._process = self._getpid()
        self._file = TraceFile(self._path, self._process)
        self._queue: Deque[Record] = deque()
        self._writing = threading.Lock()
        self._numbers = {kind: itertools.count() for kind in ("thread", "extra")}
        self._told: Set[int] = set()
        self._places: Set[int] = set()
        self._left = MOST_EVENTS
        self._is_closed = False
        self.values = Values(self._folder, self._put_text)
        self.show, self.error, self.number = self._show, self.values.error, self.values.number
        self._queue.append((ORIGIN, self._began))
        self._strands: Dict[int, Strand] = {}
        self._gone: List[Strand] = []
        self.main = self._meet(name, parent)
        return self._file

    def _put_text(self, number: int, text: str) -> None:
        self._queue.append((TEXT, number, text))

    def _show(self, value: Any) -> int:
        if value is None or type(value) is bool:
            return self.values.code(repr(value))
        if type(value) is str:
            return self.values.string(value)
        return self.values.other(type(value), value)

    # --- threads --------------------------------------------------------------------------------

    def functions(self) -> Dict[str, Callable[..., Any]]:
        """What rewritten code calls in the thread that asks."""
        strand = self._strands.get(self._ident())
        # Not `current_thread()`: that makes an object for a thread which has none.
        own = threading._active.get(self._ident())  # type: ignore[attr-defined]
        parent, name = self._births.pop(id(own), (None, ""))
        if strand is None or name:
            strand = self._meet(name or self._count("thread"), parent)
        return make_functions(strand, self.values)

    def _meet(self, name: str, parent: Parent) -> Strand:
        # The thread in which tests run is mostly the same: what is known of its places stays.
        memory = MEMORY if self._ident() == MAIN and not self._strands else Memory()
        strand = Strand(self, name, self._thread(name, parent), memory)
        before = self._strands.get(self._ident())
        self._strands[self._ident()] = strand
        if before is not None:
            self._gone.append(before)  # Its number is another thread's now.
        return strand

    def grow(self) -> None:
        for strand in list(self._strands.values()):
            strand.grow()

    def starts(self, thread: Any) -> None:
        """Names a thread by where it is started, before it is."""
        strand = self._strands.get(self._ident())
        if strand is not None:
            self._births[id(thread)] = (self.task(strand), self._name_child(strand))

    def _name_child(self, strand: Strand) -> str:
        place, frame = "?", sys._getframe(2)
        while frame is not None:
            file = FILES.get(frame.f_code.co_filename)
            if file is not None:
                place = f"{file}:{frame.f_lineno}"
                break
            frame = frame.f_back  # type: ignore[assignment]
        strand.started[place] = strand.started.get(place, 0) + 1
        return f"{strand.name}/{place}#{strand.started[place]}"

    def _thread(self, name: str, parent: Parent) -> int:
        number = next(self._numbers["thread"])
        if isinstance(parent, str):
            parent = printable(parent)
        self._queue.append((THREAD, number, printable(name), parent, self._process))
        return number

    def task(self, strand: Strand) -> int:
        """The task of an event loop that runs in this thread, as a thread of its own."""
        asyncio = sys.modules.get("asyncio")
        try:
            task = asyncio.current_task() if asyncio else None
        except (RuntimeError, AttributeError):  # No loop runs, or it is not yet loaded.
            task = None
        if task is None:
            return strand.number
        known = self._tasks.get(task)
        if known is None:
            routine = task.get_coro()
            name = routine.__qualname__ if type(routine) is CoroutineType else "task"
            # A task begins with what its maker had in its context.
            run, maker = OWNER.get()
            parent = maker if run is self._tasks else strand.number
            known = self._thread(self._count(f"{strand.name}/{name}"), parent)
            self._tasks[task] = known
            OWNER.set((self._tasks, known))
        return known

    def _count(self, name: str) -> str:
        self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}#{self._counts[name]}"

    # --- sites ----------------------------------------------------------------------------------

    def site(self, place: int, module: str, name: str) -> Tuple[int, int]:
        """The number and the kind of something that is called at a place."""
        known = SITE_NUMBERS.get((place, module, name))
        if known is None:
            callee = name if module in ("builtins", "?") else f"{module}.{name}"
            kind = WAIT if module == "await" else self._kind(module, name)
            with SITES_LOCK:
                known = SITE_NUMBERS[place, module, name] = (len(SITES), kind)
                SITES.append((place, callee.replace("await.", "await "), kind))
        return known

    def _kind(self, module: str, name: str) -> int:
        """The kind of a function; one of the project's own is plain, whatever its module is called."""
        found = sys.modules.get(module)
        own = module_dict(found).get("__file__") if type(found) is ModuleType else None
        return PLAIN if type(own) is str and own in FILES else kind_of(f"{module}.{name}")

    def _tell_sites(self, numbers: Iterable[int]) -> None:
        """Puts the sites that events name, and were not yet told, before them."""
        for number in numbers:
            if number < CAUGHT and number not in self._told:
                place, callee, kind = SITES[number]
                self._tell_place(place)
                self._queue.append((SITE, number, place, printable(callee), kind))
                self._told.add(number)  # Twice does no harm, and too late would.

    def _tell_place(self, place: int) -> None:
        """Has a place and those around it told."""
        if place not in self._places:
            inside = PLACES[place].inside
            if inside is not None:
                self._tell_place(inside)
            self._put_place(place, PLACES[place])
            self._places.add(place)

    def _put_place(self, number: int, place: Place) -> None:
        file, caller = printable(place.file), printable(place.caller)
        lines = place.line, place.last_line, place.column
        self._queue.append((PLACE, number, file, *lines, caller, place.inside, int(place.is_library)))

    def wait_site(self, place: int, value: Any) -> int:
        name = value.__qualname__ if type(value) is CoroutineType else class_name(type(value))
        return self.site(place, "await", name)[0]

    def put_call(self, site: int, thread: int, start: int, end: int, value: Any) -> None:
        """A call that is told as a whole."""
        self._put(site, thread, start, max(end - start, 0), self._show(value))

    def put_order(self, place: int, kind: str, thread: int, value: Any) -> None:
        """The order in which a set is gone through, as if a call had returned it."""
        site, now = self.site(place, "builtins", f"{kind}.__iter__")[0], CLOCK[0]()
        self._put(site, thread, now, 0, self.values.order(value))

    def _put(self, site: int, thread: int, start: int, duration: int, code: int) -> None:
        self._tell_sites((site,))
        self._queue.append((CALL, site, thread, 0, start, duration, 0, code))

    def leftover(self, place: Tuple[str, int], what: str, number: int, now: int) -> None:
        """Something that the test has left over, as if a call had returned how much."""
        file, line = place
        # Numbers that no place and no site can have.
        extra = CAUGHT + next(self._numbers["extra"])
        self._put_place(extra, Place(file, line, line, 0, "", None, False, ""))
        self._queue.append((SITE, extra, extra, what, LEFTOVER))
        self.put_call(extra, self.main.number, now, now, number)

    # --- writing --------------------------------------------------------------------------------

    def write(self, strand: Strand, everything: bool = False) -> None:
        """Writes what a thread has told, if it is enough."""
        if len(strand.events) < BATCH and not everything:
            return
        if self._is_closed or not self._writing.acquire(blocking=False):
            return  # Somebody is at it, perhaps further up in this very thread.
        try:
            self._write_events(strand)
            while self._gone:
                self._write_last(self._gone.pop())
            self._file.flush()
        except OSError:
            self._is_closed = True  # Without its end, it is seen to be cut.
        finally:
            self._writing.release()

    def _write_events(self, strand: Strand) -> None:
        # Texts and sites are in the queue before they are in an event.
        events = strand.events[:]
        del strand.events[: len(events)]
        self._tell_sites(set(events[::FIELDS]))
        self._write_queue()
        if not events or self.is_cut:
            return
        self._left -= len(events) // FIELDS
        if self._left < 0:
            self.is_cut = True
            self._queue.append((CUT,))
        self._file.events(strand.number, events)

    def _write_queue(self) -> None:
        records = []
        while self._queue:
            records.append(self._queue.popleft())
        if records:
            self._file.records(records)

    def close(self) -> None:
        """Ends this process's part of the trace."""
        if self._is_closed:
            return
        self._writing.acquire()  # Whoever is at it ends first; and nobody begins again.
        self._is_closed = True
        alive = set(sys._current_frames())
        try:
            for strand in (*self._gone, *self._strands.values()):
                self._write_last(strand)
            for ident, strand in list(self._strands.items()):
                if ident in alive and strand is not self.main:
                    self._queue.append((ALIVE, strand.number))
            self._queue.append((END, self._file.count))
            self._write_queue()
            self._file.flush()
        except OSError:
            pass  # Without its end, it is seen to be cut.

    def _write_last(self, strand: Strand) -> None:
        self._write_events(strand)
        for site, *counts in strand.hot():
            self._queue.append((HOT, site, strand.number, *counts))

    def forked(self) -> None:
        """In a forked child: what follows is its own part of the file."""
        strand = self._strands.get(self._ident(), self.main)
        name = self._name_child(strand)
        self._births.clear()
        self._begin_file(f"{name}/fork", strand.name)

    def birth(self) -> Birth:
        """The facts that a Python process needs, if it starts now, to write its part of the file."""
        strand = self._strands.get(self._ident(), self.main)
        name = self._name_child(strand)
        return Birth(self._path, self._folder, f"{name}/python", strand.name, self._began, None)


def printable(text: str) -> str:
    """A text without lone surrogates, which cannot travel."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")

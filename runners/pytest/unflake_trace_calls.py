"""Records the calls that rewritten code tells of.

Each thread has a stack of the calls that have begun and not ended. An entry whose frame goes on without
having ended it was left by an exception.
"""

import itertools
import os
import re
import sys
import tempfile
import threading
from collections import deque
from time import perf_counter_ns
from types import CoroutineType
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple
from weakref import WeakKeyDictionary

from unflake_state_values import class_name, cut, write
from unflake_trace_file import Row, TraceFile
from unflake_trace_kinds import LEFTOVER, WAIT, identify, kind_of
from unflake_trace_sites import SITES

# More calls are not written: a trace is to be read again, together with a hundred others.
MOST_CALLS = 2_000_000
# So many records wait before they are written.
BATCH = 4000
VALUE_LIMIT = 120
ADDRESS = re.compile(r"0x[0-9a-fA-F]{5,}")

# Site, frame, row, thread, receiver and start of a call that has begun.
Entry = List[Any]


class Strand:
    """A thread of the project's."""

    __slots__ = ("frames", "name", "number", "stack", "started")

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.stack: List[Entry] = []
        self.frames: Dict[int, int] = {}  # How many entries each frame has.
        self.started: Dict[str, int] = {}  # How many threads each place has started.


class Local(threading.local):
    strand: Optional[Strand] = None


class Calls:
    """The calls of one run.

    What is to be written goes through a queue: a finalizer of the project's can run in the middle of
    anything here, and make calls.
    """

    def __init__(self, path: str, folder: str) -> None:
        self._file = TraceFile(path)
        self._queue: Deque[Tuple[Any, ...]] = deque()
        self._writing = threading.Lock()
        self._local = Local()
        self._tasks: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._site_numbers, self._thread_numbers = itertools.count(), itertools.count()
        # By the threads' addresses: who starts them, and their names.
        self._births: Dict[int, Tuple[int, str]] = {}
        self._rows: Dict[Tuple[int, str, str], int] = {}
        self._receivers: Dict[int, int] = {}
        self._waits: Dict[Tuple[int, int], Tuple[int, int, int]] = {}
        self._counts: Dict[str, int] = {}
        self._left, self._began = MOST_CALLS, perf_counter_ns()
        self._is_closed = False
        # These differ between runs, and say nothing.
        places = [(os.path.realpath(tempfile.gettempdir()), "<tmp>"), (folder, "<project>")]
        self._places = sorted(places, key=lambda place: -len(place[0]))
        self._main = self._local.strand = self._strand("main", None)

    # --- what rewritten code calls --------------------------------------------------------------

    def begin(self, site: int, function: Any) -> Any:
        frame = id(sys._getframe(1))
        strand = self._local.strand or self._meet()
        stack = strand.stack
        if frame in strand.frames:
            around = SITES[site].around
            while frame in strand.frames and not (stack[-1][1] == frame and stack[-1][0] in around):
                self._drop(strand)
        module, name, receiver = identify(function)
        row = self._rows.get((site, module, name))
        if row is None:
            row = self._row(site, module, name)
        number = 0
        if receiver is not None:
            number = self._receivers.setdefault(id(receiver), len(self._receivers) + 1)
        thread = stack[-1][3] if stack else strand.number
        if SITES[site].is_async:
            thread = self._task(strand)
        stack.append([site, frame, row, thread, number, perf_counter_ns()])
        strand.frames[frame] = strand.frames.get(frame, 0) + 1
        return function

    def end(self, site: int, value: Any) -> Any:
        now = perf_counter_ns()
        frame = id(sys._getframe(1))
        strand = self._local.strand
        if strand is None or frame not in strand.frames:
            return value  # It began before the recording did.
        stack = strand.stack
        while stack[-1][0] != site or stack[-1][1] != frame:
            self._drop(strand)
            if frame not in strand.frames:
                return value
        entry = self._pop(strand)
        self._write(entry, now, False, self._show(value))
        if stack and SITES[site].inside == stack[-1][0]:
            stack[-1][5] = perf_counter_ns()  # It was an argument: the call itself begins now.
        return value

    def waits(self, site: int, value: Any) -> Any:
        strand = self._local.strand or self._meet()
        name = value.__qualname__ if type(value) is CoroutineType else class_name(type(value))
        row = self._rows.get((site, "await", name))
        if row is None:
            row = self._row(site, "await", name)
        key = (id(sys._getframe(1)), site)
        self._waits[key] = (row, self._task(strand), perf_counter_ns())
        return value

    def waited(self, site: int, value: Any) -> Any:
        found = self._waits.pop((id(sys._getframe(1)), site), None)
        if found is not None:
            row, thread, start = found
            entry = [site, 0, row, thread, 0, start]
            self._write(entry, perf_counter_ns(), False, self._show(value))
        return value

    # --- threads --------------------------------------------------------------------------------

    def starts(self, thread: Any) -> None:
        """Names a thread by where it is started, before it is."""
        strand = self._local.strand or self._meet()
        top = strand.stack[-1] if strand.stack else None
        place = f"{SITES[top[0]].file}:{SITES[top[0]].line}" if top else "?"
        parent = top[3] if top else strand.number
        strand.started[place] = strand.started.get(place, 0) + 1
        self._births[id(thread)] = (parent, f"{strand.name}/{place}#{strand.started[place]}")

    def _meet(self) -> Strand:
        """A thread that makes its first call."""
        # Not `current_thread()`: that makes an object for a thread which has none.
        own = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
        parent, name = self._births.get(id(own), (None, ""))
        strand = self._local.strand = self._strand(name or self._count("thread"), parent)
        return strand

    def _strand(self, name: str, parent: Optional[int]) -> Strand:
        return Strand(name, self._thread(name, parent))

    def _thread(self, name: str, parent: Optional[int]) -> int:
        number = next(self._thread_numbers)
        self._queue.append((self._file.thread, number, name, parent, os.getpid()))
        return number

    def _task(self, strand: Strand) -> int:
        """The task of an event loop that runs in this thread, as a thread of its own."""
        asyncio = sys.modules.get("asyncio")
        try:
            task = asyncio.current_task() if asyncio else None
        except RuntimeError:  # No loop runs.
            task = None
        if task is None:
            return strand.number
        known = self._tasks.get(task)
        if known is None:
            routine = task.get_coro()
            name = routine.__qualname__ if type(routine) is CoroutineType else "task"
            known = self._thread(self._count(f"{strand.name}/{name}"), strand.number)
            self._tasks[task] = known
        return known

    def _count(self, name: str) -> str:
        self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}#{self._counts[name]}"

    # --- writing --------------------------------------------------------------------------------

    def _row(self, site: int, module: str, name: str) -> int:
        place = SITES[site]
        callee = name if module in ("builtins", "?") else f"{module}.{name}"
        kind = WAIT if module == "await" else kind_of(f"{module}.{name}")
        row = Row(
            place.file, place.line, place.column, place.caller, callee.replace("await.", "await "), kind
        )
        number = self._rows[site, module, name] = self._put_row(row)
        return number

    def _put_row(self, row: Row) -> int:
        number = next(self._site_numbers)
        self._queue.append((self._file.site, number, row))
        return number

    def _pop(self, strand: Strand) -> Entry:
        entry = strand.stack.pop()
        frame = entry[1]
        if strand.frames[frame] == 1:
            del strand.frames[frame]
        else:
            strand.frames[frame] -= 1
        return entry

    def _drop(self, strand: Strand) -> None:
        """The innermost call was left by an exception: the one being handled, if any is."""
        error = sys.exc_info()[1]
        text = None if error is None else class_name(type(error))
        entry = self._pop(strand)
        self._write(entry, perf_counter_ns(), True, text)
        site, stack = entry[0], strand.stack
        while stack and stack[-1][1] == entry[1] and stack[-1][0] == SITES[site].inside:
            site = self._pop(strand)[0]  # Its argument failed, so that it was never called.

    def _write(self, entry: Entry, now: int, raised: bool, text: Optional[str]) -> None:
        times = (entry[5] - self._began, now - self._began)
        self._left -= 1
        if self._left > 0:
            self._queue.append((self._file.call, entry[2], entry[3], entry[4], times, raised, text))
        elif self._left == 0:
            self._queue.append((self._file.cut,))
        if len(self._queue) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._is_closed or not self._writing.acquire(blocking=False):
            return  # Somebody is at it, perhaps further up in this very thread.
        try:
            while self._queue:
                write, *record = self._queue.popleft()
                write(*record)
        finally:
            self._writing.release()

    def _show(self, value: Any) -> str:
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return repr(value)
        if kind is int and -(10**15) < value < 10**15:
            return repr(value)
        text = write(value, 2)
        if "0x" in text:
            text = ADDRESS.sub("0x…", text)
        if "/" in text:
            for place, name in self._places:
                text = text.replace(place, name)
        return cut(text, VALUE_LIMIT)

    def leftover(self, place: Tuple[str, int], what: str, number: int) -> None:
        """Something that the test has left over, as if a call had returned how much."""
        row = self._put_row(Row(*place, 0, "", what, LEFTOVER))
        now = perf_counter_ns()
        self._write([0, 0, row, 0, 0, now], now, False, repr(number))

    def close(self) -> None:
        """Ends the trace. What is still open is of threads that go on, or was left by an exception."""
        while self._main.stack:
            self._drop(self._main)
        self._flush()
        self._writing.acquire()  # Whoever is at it ends first; and nobody begins again.
        self._is_closed = True
        self._file.close()

    def forget(self) -> None:
        """In a forked child: the file is the parent's."""
        self._is_closed = True


def quiet() -> Dict[str, Callable[[int, Any], Any]]:
    """What rewritten code calls while nothing is recorded."""

    def same(_site: int, value: Any) -> Any:
        return value

    names = itertools.repeat(same)
    return dict(zip(("begin", "end", "waits", "waited"), names))

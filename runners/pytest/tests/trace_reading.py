"""Reads trace files, as `docs/trace-format.md` has them, as simply as can be."""

import json
import struct
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from unflake_trace_file import (
    ALIVE,
    CALL,
    CAUGHT,
    CUT,
    END,
    EVENTS,
    HOT,
    LINE,
    MAGIC,
    ORIGIN,
    PLACE,
    SITE,
    TASK,
    TEXT,
    THREAD,
)

FIRST_TIME = 1 << 24


class Called(NamedTuple):
    """A call, with texts in place of their numbers."""

    start: int
    file: str
    line: int
    column: int
    caller: str
    callee: str
    kind: int
    thread: str
    receiver: int
    is_raised: bool
    value: Optional[str]
    end: int


class Open:
    def __init__(self, site: int, begun: int, receiver: int, thread: int) -> None:
        self.site, self.begun, self.start, self.receiver, self.thread = site, begun, begun, receiver, thread


class Process:
    """What one process has told."""

    def __init__(self) -> None:
        self.texts: Dict[int, str] = {}
        self.places: Dict[int, Tuple[Any, ...]] = {}
        self.sites: Dict[int, Tuple[Any, ...]] = {}
        self.threads: Dict[int, Tuple[str, Optional[str], int]] = {}
        self.stacks: Dict[int, List[Open]] = {}
        self.calls: List[Called] = []
        self.hot: List[Tuple[str, str, int, int, Optional[str]]] = []
        self.events = self.ended = 0
        self.times: Dict[int, int] = {}

    # --- records --------------------------------------------------------------------------------

    def take(self, tag: int, *fields: Any) -> None:
        if tag == TEXT:
            self.texts[fields[0]] = fields[1]
        elif tag == PLACE:
            self.places[fields[0]] = fields[1:]
        elif tag == SITE:
            self.sites[fields[0]] = fields[1:]
        elif tag == THREAD:
            number, name, parent, process = fields
            if isinstance(parent, int):
                parent = self.threads[parent][0]
            self.threads[number] = (name, parent, process)
        elif tag == CALL:
            site, thread, receiver, start, duration, raised, code = fields
            opened = Open(site, start, receiver, thread)
            self.put(opened, start + duration, bool(raised), self.value(code))
        elif tag == HOT:
            site, thread, count, changes, code = fields
            self.hot.append((self.sites[site][1], self.threads[thread][0], count, changes, self.value(code)))
        elif tag == END:
            self.ended = 1
            assert fields[0] == self.events
        else:
            assert tag in (ALIVE, CUT, ORIGIN)

    def value(self, code: int) -> Optional[str]:
        if code % 2:
            return str(code >> 1)
        return self.texts[code // 2 - 1] if code else None

    def put(self, opened: Open, end: int, is_raised: bool, value: Optional[str]) -> None:
        place, callee, kind = self.sites[opened.site]
        file, line, _, column, caller, _, _ = self.places[place]
        texts = file, line, column, caller, callee, kind
        thread = self.threads[opened.thread][0]
        self.calls.append(Called(opened.start, *texts, thread, opened.receiver, is_raised, value, end))

    # --- events ---------------------------------------------------------------------------------

    def event(self, thread: int, first: int, time: int, third: int) -> None:
        self.events += 1
        stack = self.stacks.setdefault(thread, [])
        if first == TASK:
            stack[-1].thread = time
        elif first == CAUGHT:
            self.caught = time, self.value(third)
        elif first == LINE:
            self.leave(stack, self.texts[third], time)
        elif first < FIRST_TIME:
            owner = stack[-1].thread if stack else thread
            stack.append(Open(first, time, third, owner))
        else:
            self.times[thread] = time
            while stack and any(one.begun >= first for one in stack[:-1]):
                self.drop(stack, time, None)
            if stack and stack[-1].begun >= first:
                ended = stack.pop()
                self.put(ended, time, False, self.value(third))
                if stack and self.is_argument(ended, stack[-1]):
                    stack[-1].start = time

    def leave(self, stack: List[Open], file: str, line: int) -> None:
        for one in reversed(stack):
            name, first, last, *_ = self.places[self.sites[one.site][0]]
            if name == file and first <= line <= last:
                while stack[-1] is not one:
                    self.drop(stack, *self.caught)
                self.drop(stack, *self.caught)
                return

    def drop(self, stack: List[Open], time: int, text: Optional[str]) -> None:
        left = stack.pop()
        self.put(left, time, True, text)
        while stack and self.is_argument(left, stack[-1]):
            left = stack.pop()  # It was never called.

    def is_argument(self, inner: Open, outer: Open) -> bool:
        return bool(self.places[self.sites[inner.site][0]][5] == self.sites[outer.site][0])


def read(path: str) -> List[Process]:
    """What each process has told, in the order in which they began to."""
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC)
    found: Dict[int, Process] = {}
    at = len(MAGIC)
    while at < len(data):
        size, process, kind = struct.unpack_from("<IIB", data, at)
        plain = zlib.decompress(data[at + 9 : at + 9 + size])
        at += 9 + size
        told = found.setdefault(process, Process())
        if kind != EVENTS:
            for record in json.loads(plain):
                told.take(*record)
            continue
        thread, count, mask = struct.unpack_from("<III", plain)
        columns, start = bytearray(24 * count), 12
        for plane in range(24):
            if mask >> plane & 1:
                columns[plane::24] = plain[start : start + count]
                start += count
        for event in struct.iter_unpack("<qqq", bytes(columns)):
            told.event(thread, *event)
    for told in found.values():
        for thread, stack in told.stacks.items():
            while stack:
                told.drop(stack, told.times.get(thread, 0), None)
    return list(found.values())

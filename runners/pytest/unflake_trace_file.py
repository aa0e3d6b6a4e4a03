"""Writes a trace, as `docs/trace-format.md` has it.

It is compressed by zlib, which every Python has, in frames of some thousand events: what was written
before a process was killed can be read, and it can be seen that the end is missing. The file is opened
for each frame, so that a test which closes or counts descriptors finds none of ours.
"""

import os
import struct
import sys
import zlib
from array import array
from typing import Any, List, NamedTuple, Optional

MAGIC = b"UNFLAKE-TRACE\x02"
RECORDS, EVENTS = 1, 2
TEXT, PLACE, SITE, THREAD, CALL, HOT, ALIVE, CUT, END, ORIGIN = range(1, 11)
# What an event begins with that is no beginning of a call, and no time.
CAUGHT, LINE, TASK = 1 << 23, (1 << 23) + 1, (1 << 23) + 2
FIELDS, BYTES = 3, 8
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class Site(NamedTuple):
    """What is called, at a place."""

    place: int
    callee: str
    kind: int


class TraceFile:
    """A trace on its way to the disk. Its methods run while the project's threads wait."""

    def __init__(self, path: str, process: int) -> None:
        # Tests put others in the place of these functions.
        self._open, self._write, self._close = os.open, os.write, os.close
        self._compress, self._array, self._pack = zlib.compress, array, struct.pack
        self._path, self._process = path, process
        self._bytes = bytearray()
        self._events = 0

    def create(self) -> None:
        handle = self._open(self._path, FLAGS | os.O_TRUNC, 0o600)
        self._write(handle, MAGIC)
        self._close(handle)

    # --- records --------------------------------------------------------------------------------

    def text(self, number: int, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self._put(TEXT, number, len(data))
        self._bytes += data

    def place(self, number: int, file: int, caller: int, place: Any) -> None:
        inside = 0 if place.inside is None else place.inside + 1
        lines = place.line, place.last_line, place.column
        self._put(PLACE, number, file, *lines, caller, inside)

    def site(self, number: int, place: int, callee: int, kind: int) -> None:
        self._put(SITE, number, place, callee, kind)

    def thread(self, number: int, name: int, parent: Optional[int]) -> None:
        self._put(THREAD, number, name, 0 if parent is None else parent + 1, self._process)

    def call(self, site: int, thread: int, start: int, end: int, code: int) -> None:
        """A call that came and went as a whole."""
        raised = 0
        self._put(CALL, site, thread, 0, start, max(end - start, 0), raised, zigzag(code))

    def hot(self, site: int, thread: int, count: int, changes: int, code: int) -> None:
        """A place of which no more single calls are told."""
        self._put(HOT, site, thread, count, changes, zigzag(code))

    def origin(self, time: int) -> None:
        """From when on times count."""
        self._put(ORIGIN, time)

    def alive(self, thread: int) -> None:
        self._put(ALIVE, thread)

    def cut(self) -> None:
        """From here on events were left out, because there were too many."""
        self._put(CUT)

    def end(self) -> None:
        self._put(END, self._events)

    def _put(self, tag: int, *numbers: int) -> None:
        out = self._bytes
        out.append(tag)
        for number in numbers:
            while number >= 0x80:
                out.append(number & 0x7F | 0x80)
                number >>= 7
            out.append(number)

    def flush(self) -> None:
        """Writes the records that wait."""
        if self._bytes:
            data, self._bytes = bytes(self._bytes), bytearray()
            self._frame(RECORDS, data)

    # --- events ---------------------------------------------------------------------------------

    def events(self, thread: int, events: List[int]) -> None:
        """Writes three numbers each; byte by byte, as those of one place are much alike."""
        self.flush()
        numbers = self._array("q", events)
        if sys.byteorder == "big":
            numbers.byteswap()
        data = numbers.tobytes()
        count, width = len(events) // FIELDS, FIELDS * BYTES
        planes, mask, nothing = [b""], 0, bytes(count)
        for at in range(width):
            plane = data[at::width]
            if plane != nothing:
                planes.append(plane)
                mask |= 1 << at
        planes[0] = self._pack("<III", thread, count, mask)
        self._events += count
        self._frame(EVENTS, b"".join(planes))

    def _frame(self, kind: int, data: bytes) -> None:
        data = self._compress(data, 1)
        frame = self._pack("<IIB", len(data), self._process, kind) + data
        handle = self._open(self._path, FLAGS, 0o600)
        try:
            # All at once, as other processes may write too.
            if self._write(handle, frame) != len(frame):
                raise OSError("the disk is full")
        finally:
            self._close(handle)


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1

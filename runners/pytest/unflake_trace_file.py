"""Writes a trace, as `docs/trace-format.md` has it.

It is compressed by zlib, which every Python has, in frames of some thousand events: what was written
before a process was killed can be read, and it can be seen that the end is missing. The file is opened
for each frame, so that a test which closes or counts descriptors finds none of ours.
"""

import json
import os
import struct
import sys
import zlib
from array import array
from typing import Any, Iterable, List, Tuple

MAGIC = b"UNFLAKE-TRACE\x02"
RECORDS, EVENTS = 1, 2
TEXT, PLACE, SITE, THREAD, CALL, HOT, ALIVE, CUT, END, ORIGIN = range(1, 11)
# The first numbers of events that are neither the beginning of a call nor a time.
CAUGHT, LINE, TASK = 1 << 23, (1 << 23) + 1, (1 << 23) + 2
FIELDS, BYTES = 3, 8
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
Record = Tuple[Any, ...]


class TraceFile:
    """A trace on its way to the disk. Its methods run while the project's threads wait."""

    def __init__(self, path: str, process: int) -> None:
        # Tests put others in the place of these functions.
        self._open, self._write, self._close = os.open, os.write, os.close
        self._compress, self._array, self._pack = zlib.compress, array, struct.pack
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        self._path, self._process = path, process
        self._frames: List[bytes] = []
        self._flags = FLAGS
        self.count = 0  # How many events were told.

    def create(self) -> None:
        """What is written next begins the file."""
        self._frames.insert(0, MAGIC)
        self._flags |= os.O_TRUNC

    def records(self, records: Iterable[Record]) -> None:
        text = self._encode(list(records))
        self._frame(RECORDS, text.encode("ascii"))

    def events(self, thread: int, events: List[int]) -> None:
        """Three numbers each; byte by byte, as those of one place are much alike."""
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
        self.count += count
        self._frame(EVENTS, b"".join(planes))

    def _frame(self, kind: int, data: bytes) -> None:
        data = self._compress(data, 1)
        self._frames.append(self._pack("<IIB", len(data), self._process, kind) + data)

    def flush(self) -> None:
        data = b"".join(self._frames)
        if not data:
            return
        handle = self._open(self._path, self._flags, 0o600)
        self._frames, self._flags = [], FLAGS
        try:
            # All at once, as other processes may write too.
            if self._write(handle, data) != len(data):
                raise OSError("the disk is full")
        finally:
            self._close(handle)

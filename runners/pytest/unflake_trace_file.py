"""Writes a trace, as `docs/trace-format.md` has it.

It is compressed by zlib, which every Python has, in frames of some thousand calls: what was written
before a process was killed can be read, and it can be seen that the end is missing.
"""

import struct
import zlib
from typing import Dict, NamedTuple, Optional, Tuple

MAGIC = b"UNFLAKE-TRACE\x01"
TEXT, SITE, THREAD, CALL, CUT, END = range(1, 7)
FRAME = 1 << 16  # so many bytes are compressed at once


class Row(NamedTuple):
    """A place, and what is called there."""

    file: str
    line: int
    column: int
    caller: str
    callee: str
    kind: int


class TraceFile:
    """A trace on its way to the disk. Its methods run while the project's threads wait."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115
        self._file.write(MAGIC)
        self._bytes = bytearray()
        self._texts: Dict[str, int] = {}
        # In a file sites and threads are numbered as they come.
        self._sites: Dict[int, int] = {}
        self._threads: Dict[int, int] = {}
        self._last, self._calls = 0, 0

    def site(self, number: int, row: Row) -> None:
        self._sites[number] = len(self._sites)
        file, caller, callee = (self._text(one) for one in (row.file, row.caller, row.callee))
        self._put(SITE, file, row.line, row.column, caller, callee, row.kind)

    def thread(self, number: int, name: str, parent: Optional[int], process: int) -> None:
        self._threads[number] = len(self._threads)
        place = 0 if parent is None else self._threads[parent] + 1
        self._put(THREAD, self._text(name), place, process)

    def call(
        self, site: int, thread: int, receiver: int, times: Tuple[int, int], raised: bool, text: Optional[str]
    ) -> None:
        """A call that has ended; `receiver` counts from 1, and 0 is none."""
        start, end = times
        value = 0 if text is None else self._text(text) + 1
        step, self._last = start - self._last, start
        place = self._sites[site], self._threads[thread]
        self._put(CALL, *place, receiver, zigzag(step), max(end - start, 0), raised, value)
        self._calls += 1
        if len(self._bytes) >= FRAME:
            self._flush()

    def cut(self) -> None:
        """From here on calls were left out, because there were too many."""
        self._put(CUT)

    def close(self) -> None:
        self._put(END, self._calls)
        self._flush()
        self._file.close()

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts)
            data = text.encode("utf-8", "backslashreplace")
            self._put(TEXT, len(data))
            self._bytes += data
        return number

    def _put(self, tag: int, *numbers: int) -> None:
        out = self._bytes
        out.append(tag)
        for number in numbers:
            while number >= 0x80:
                out.append(number & 0x7F | 0x80)
                number >>= 7
            out.append(number)

    def _flush(self) -> None:
        data = zlib.compress(bytes(self._bytes), 1)
        frame = struct.pack("<I", len(data)) + data
        while frame:
            frame = frame[self._file.write(frame) :]
        self._bytes.clear()


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1

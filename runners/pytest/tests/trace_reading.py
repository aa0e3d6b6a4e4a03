"""Reads trace files, as `docs/trace-format.md` has them."""

import struct
import zlib
from typing import Any, List

from unflake_trace_file import CALL, CUT, END, MAGIC, SITE, TEXT, THREAD, Row


def read(path: str) -> List[Any]:
    """The records of a trace file: tag and numbers, texts in place of their numbers."""
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC)
    plain, at = bytearray(), len(MAGIC)
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        plain += zlib.decompress(data[at + 4 : at + 4 + size])
        at += 4 + size
    fields = {TEXT: 1, SITE: 6, THREAD: 3, CALL: 7, CUT: 0, END: 1}
    records: List[Any] = []
    texts: List[str] = []
    at = 0
    while at < len(plain):
        tag, at = plain[at], at + 1
        numbers = []
        for _ in range(fields[tag]):
            number = shift = 0
            while True:
                byte, at = plain[at], at + 1
                number |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            numbers.append(number)
        if tag == TEXT:
            texts.append(plain[at : at + numbers[0]].decode())
            at += numbers[0]
        elif tag == SITE:
            name, line, column, caller, callee, kind = numbers
            records.append((tag, Row(texts[name], line, column, texts[caller], texts[callee], kind)))
        elif tag == THREAD:
            records.append((tag, texts[numbers[0]], *numbers[1:]))
        elif tag == CALL:
            value = None if numbers[6] == 0 else texts[numbers[6] - 1]
            records.append((tag, *numbers[:6], value))
        else:
            records.append((tag, *numbers))
    return records

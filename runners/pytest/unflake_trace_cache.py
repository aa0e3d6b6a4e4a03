"""Keeps rewritten code from one interpreter to the next, and gives its places their numbers.

Parsing, rewriting and compiling takes longer than many a test. The code is kept beside the traces, and not
beside the project's files: a later plain run must not find it. In the code that is kept a place has only its
number within its file, so that it can be loaded after any other.
"""

import contextlib
import hashlib
import marshal
import os
import sys
from types import CodeType
from typing import Any, Callable, List, Optional, Tuple

from unflake_trace_sites import FIRST, PENDING, PLACES, Place

Load = Callable[[], CodeType]


class Cache:
    """The folder of rewritten code."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        # Tests put others in the place of these functions.
        self._stat, self._open, self._replace = os.stat, open, os.replace
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)

    def load(self, path: str, file: str, make: Load) -> CodeType:
        """The rewritten code of a file, as it was kept or as it is made now."""
        try:
            status = self._stat(path)
            key = f"{path}\0{status.st_mtime_ns}\0{status.st_size}\0{sys.implementation.cache_tag}"
            name = os.path.join(
                self._folder, hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
            )
        except OSError:  # It is in no file.
            return settle(make(), PENDING.pop(file, []))
        kept = self._read(name)
        if kept is None:
            code = make()
            kept = (PENDING.pop(file, []), code)
            self._write(name, kept)
        return settle(kept[1], kept[0])

    def _read(self, name: str) -> Optional[Tuple[List[Any], CodeType]]:
        try:
            with self._open(name, "rb") as file:
                places, code = marshal.loads(file.read())
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return [Place(*place) for place in places], code

    def _write(self, name: str, kept: Tuple[List[Any], CodeType]) -> None:
        with contextlib.suppress(OSError):  # Then it is made anew next time.
            own = f"{name}.{os.getpid()}"
            with self._open(own, "wb") as file:
                file.write(marshal.dumps(([tuple(place) for place in kept[0]], kept[1])))
            self._replace(own, name)


def settle(code: CodeType, places: List[Place]) -> CodeType:
    """Gives the places of a file numbers that no other file has."""
    base = len(PLACES)
    for place in places:
        inside = None if place.inside is None else place.inside + base
        PLACES.append(place._replace(inside=inside))
    return number(code, base)


def number(code: CodeType, base: int) -> CodeType:
    constants = tuple(
        number(one, base)
        if type(one) is CodeType
        else int(one.imag) + base
        if type(one) is complex and one.real == FIRST
        else one
        for one in code.co_consts
    )
    return code.replace(co_consts=constants)

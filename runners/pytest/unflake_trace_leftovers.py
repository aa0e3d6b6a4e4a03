"""Counts what a test should give back: threads, descriptors, processes, files and memory."""

import contextlib
import os
import tempfile
import threading
from typing import Dict

# Less than so many bytes of memory say nothing: allocators keep and return pages as they like.
GRAIN = 16 << 20
DESCRIPTORS, SOCKETS = "file descriptors left over", "sockets left over"
THREADS, PROCESSES = "threads left over", "child processes left over"
FILES, MEMORY = "temporary files left over", "memory left over, in bytes"


def leftovers() -> Dict[str, int]:
    """The amounts of what a test should give back, as far as this system tells them."""
    found = {THREADS: threading.active_count()}
    with contextlib.suppress(OSError):  # Another system than Linux, or one that does not tell.
        opened = [target for target in map(read_link, os.listdir("/proc/self/fd")) if target]
        found[SOCKETS] = sum(target.startswith("socket:") for target in opened)
        found[DESCRIPTORS] = len(opened)
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        found[PROCESSES] = len(file.read().split())
    with contextlib.suppress(OSError):
        found[FILES] = len(os.listdir(tempfile.gettempdir()))
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        found[MEMORY] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return found


def difference(before: Dict[str, int], after: Dict[str, int]) -> Dict[str, int]:
    """The amounts that there are more than before."""
    found = {what: number - before[what] for what, number in after.items() if what in before}
    if MEMORY in found:
        found[MEMORY] = max(found[MEMORY], 0) // GRAIN * GRAIN
    return found


def read_link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # The descriptor that the folder was read with.
        return ""

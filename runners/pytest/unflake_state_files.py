"""Files under the project, in the temporary folder and in the enclosing `.git`, and the way back.

A file is known by its size, time of change, number and mode. What small files contain is kept, and read
again only when one of these has changed. What tools write for themselves is left out, and so are the
objects of git: they are many, and nothing depends on one that no other file names.
"""

import contextlib
import os
import re
import shutil
import stat
import sys
from io import FileIO
from os import lstat, readlink, scandir
from time import thread_time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from unflake_state_probes import Changes, Probe, read_bytes
from unflake_state_values import ABSENT, count, show

ENTRIES, SECONDS = 20_000, 2.0
SMALL, IN_ALL = 256 * 1024, 64 * 1024 * 1024
SKIPPED = frozenset(
    (
        "__pycache__", ".git", ".hg", ".svn", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox",
        ".venv", "venv", "node_modules", ".hypothesis", ".eggs", "site-packages", ".benchmarks",
    )
)  # fmt: skip
SKIPPED_FILES = (".pyc", ".pyo", ".coverage")
GIT = ("HEAD", "config", "index", "packed-refs", "info", "hooks", "refs", "MERGE_HEAD", "ORIG_HEAD")
# The part of a name that `tempfile` makes differs in each VM.
TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}")


class Entry(NamedTuple):
    """A file, a link or a folder, as it was."""

    path: str
    status: Tuple[int, ...]  # mode, size, time of change, number
    contents: Optional[bytes]  # or the target of a link; `None` if it was not read

    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status[0])


class Files(Probe):
    kind = "file"

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root, self._gits = root, find_git(root)
        self._known: Dict[str, Entry] = {}

    def mark(self) -> Dict[str, Any]:
        found = self.take()
        self._known = {entry.path: entry for entry in found.values()}
        return found

    def take(self) -> Dict[str, Any]:
        self.unseen, self._held = [], 0
        self._until = thread_time() + SECONDS
        found: Dict[str, Entry] = {}
        inside = os.path.realpath(self._root) + os.sep
        for name, folder, depth in self._places():
            number = 0
            for entry in self._walk(folder, depth, folder):
                if name and folder not in self._gits and (entry.path + os.sep).startswith(inside):
                    continue  # The project may lie in the temporary folder.
                number += 1
                if number > ENTRIES or (number % 64 == 0 and thread_time() > self._until):
                    self.unseen.append(f"more than {number:,} files under {name or folder}")
                    break
                found[os.path.join(name, os.path.relpath(entry.path, folder))] = entry
        return found

    def _places(self) -> Iterator[Tuple[str, str, int]]:
        """Its name, its place, and the depth to which it is searched."""
        yield "", self._root, 40
        temporary = (
            getattr(sys.modules.get("tempfile"), "tempdir", None) or os.environ.get("TMPDIR") or "/tmp"
        )
        if type(temporary) is str and os.path.realpath(temporary) != os.path.realpath(self._root):
            yield "$TMPDIR", os.path.realpath(temporary), 3
        for name, folder in self._gits.items():
            yield folder, name, 40

    def _walk(self, folder: str, depth: int, top: str) -> Iterator[Entry]:
        try:
            with scandir(folder) as listing:
                entries = sorted(listing, key=lambda one: one.name)
        except OSError:
            return
        for one in entries:
            if self._is_skipped(one.name, folder, top):
                continue
            try:
                entry = self._make(one.path)
            except OSError:
                continue  # It is gone already.
            yield entry
            if entry.is_folder() and depth > 1:
                yield from self._walk(one.path, depth - 1, top)

    def _is_skipped(self, name: str, folder: str, top: str) -> bool:
        if name.startswith("pytest-of-"):
            return True  # Where `tmp_path` is.
        if top in self._gits:
            return folder == top and name not in GIT
        if top != self._root:
            return folder == top and name.startswith("unflake")
        if name in SKIPPED or name.endswith(SKIPPED_FILES):
            return True
        return os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))

    def _make(self, path: str) -> Entry:
        found = lstat(path)
        if stat.S_ISDIR(found.st_mode):
            return Entry(path, (found.st_mode,), None)
        status = (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino)
        known = self._known.get(path)
        if known is not None and known.status == status:
            self._held += len(known.contents or b"")
            return known
        contents: Optional[bytes] = None
        if stat.S_ISLNK(found.st_mode):
            contents = os.fsencode(readlink(path))
        elif stat.S_ISREG(found.st_mode) and found.st_size <= SMALL and self._held + found.st_size <= IN_ALL:
            try:
                contents = read_bytes(path)
            except OSError:
                contents = None
            self._held += len(contents or b"")
        return Entry(path, status, contents)

    def look(self, path: str) -> Any:
        place, _, rest = path.partition("/")
        for name, folder, _ in self._places():
            if name in ("", place):
                full = os.path.join(folder, rest if name else path)
                for match in matches(full) if "*" in path else [full]:
                    with contextlib.suppress(OSError):
                        return self._make(match)
        return ABSENT

    def is_same(self, before: Entry, after: Entry) -> bool:
        if before.status == after.status:
            return True
        if before.contents is None or after.contents is None:
            return before.status[:3] == after.status[:3]
        return before.status[0] == after.status[0] and before.contents == after.contents

    def show(self, token: Entry) -> Optional[str]:
        if token.is_folder():
            return "a folder"
        if token.contents is not None and len(token.contents) <= 60:
            try:
                return show(token.contents.decode("utf-8"))
            except UnicodeDecodeError:
                return show(token.contents)
        return f"{count(token.status[1], 'byte')}, mode {stat.filemode(token.status[0])}"

    def write(self, path: str) -> str:
        return TEMPORARY.sub("tmp*", path) if path.startswith("$TMPDIR") else path

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return all(entry.is_folder() or entry.contents is not None for entry in self._lost(before, after))

    def put(self, path: str, before: Any, after: Any) -> None:
        if after is not ABSENT and (before is ABSENT or before.is_folder() != after.is_folder()):
            remove(after.path)
        for entry in self._lost(before, after):
            write_back(entry)

    def _lost(self, before: Any, after: Any) -> List[Entry]:
        """The entries that have to be written: for a deleted folder, all that was in it."""
        if before is ABSENT:
            return []
        if not before.is_folder() or (after is not ABSENT and after.is_folder()):
            return [before]
        inside = before.path + os.sep
        return [before, *(entry for path, entry in self._known.items() if path.startswith(inside))]

    def group(self, changes: Changes) -> Changes:
        """Leaves out what lies in a folder that came or went."""
        found: Changes = {}
        tops: List[str] = []
        for path, (old, new) in sorted(changes.items()):
            if tops and path.startswith(tops[-1]):
                continue
            found[path] = (old, new)
            if (old is ABSENT and new.is_folder()) or (new is ABSENT and old.is_folder()):
                tops.append(path + os.sep)
        return found


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def write_back(entry: Entry) -> None:
    os.makedirs(entry.path if entry.is_folder() else os.path.dirname(entry.path), exist_ok=True)
    if entry.is_folder():
        os.chmod(entry.path, stat.S_IMODE(entry.status[0]))
        return
    if stat.S_ISLNK(entry.status[0]):
        remove(entry.path)
        os.symlink(os.fsdecode(entry.contents or b""), entry.path)
        return
    with FileIO(entry.path, "w") as file:
        file.write(entry.contents or b"")
    os.chmod(entry.path, stat.S_IMODE(entry.status[0]))
    os.utime(entry.path, ns=(entry.status[2], entry.status[2]))


def matches(path: str) -> List[str]:
    """The paths that a path from a key stands for."""
    above, last = os.path.split(path)
    pattern = re.compile(re.escape(last).replace(r"tmp\*", TEMPORARY.pattern) + "$")
    found: List[str] = []
    for folder in matches(above) if "*" in above else [above]:
        with contextlib.suppress(OSError):
            found.extend(os.path.join(folder, name) for name in os.listdir(folder) if pattern.match(name))
    return found


def find_git(folder: str) -> Dict[str, str]:
    """The folders of the enclosing repository, and how they are called. A work tree has two."""
    while True:
        path = os.path.join(folder, ".git")
        if os.path.isdir(path):
            return {path: ".git"}
        if os.path.isfile(path):
            target = os.path.join(folder, os.fsdecode(read_bytes(path)).partition("gitdir:")[2].strip())
            common = os.path.join(target, "commondir")
            if not os.path.isfile(common):
                return {target: ".git"}
            shared = os.path.normpath(os.path.join(target, os.fsdecode(read_bytes(common)).strip()))
            return {target: ".git of the work tree", shared: ".git"}
        above = os.path.dirname(folder)
        if above == folder:
            return {}
        folder = above

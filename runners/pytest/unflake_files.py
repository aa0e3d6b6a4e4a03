"""Watches which files and folders are read, looked at, measured and listed, and by whom."""

import fcntl
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

if TYPE_CHECKING:
    from unflake_usage import Usage

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = ("/proc/", "/sys/", "/dev/")
# Files that pytest looks for by itself and that change what it does with a test.
TELLING = ("conftest.py", "__init__.py")
# Calls without an audit event, and one whose event does not tell from where a path is to be taken.
UNHEARD = ("stat", "lstat", "access", "readlink", "open")
# Calls that ask whether a file is there, or for something that it does not have in its content.
CHANGES = ("mkdir", "rmdir", "remove", "chmod", "utime", "truncate", "chdir")
TWICE = ("rename", "link", "symlink")
# Functions of the standard library that ask for a file's status to learn no more than whether it is there.
QUESTIONS = frozenset(
    (
        *(
            "exists",
            "lexists",
            "isfile",
            "isdir",
            "islink",
            "ismount",
            "samefile",
            "realpath",
            "_joinrealpath",
        ),
        *("is_file", "is_dir", "is_symlink", "is_mount", "resolve", "checkcache", "updatecache"),
    )
)
# The modules that have them.
ASKERS = frozenset(("genericpath", "posixpath", "pathlib", "pathlib._abc", "pathlib._local", "linecache"))

# What is known of installed packages.
METADATA = (".egg-info/", ".dist-info/")


class Files:
    """Tells what happens to files, by audit hooks and by wrappers around calls that have none."""

    def __init__(self, usage: "Usage") -> None:
        self._usage = usage
        self._readlink = os.readlink

    def start(self) -> Dict[str, Callable[..., None]]:
        """Wraps what must be wrapped, and says what to do at which audit event."""
        for name in UNHEARD:
            self._wrap(name)
        actions: Dict[str, Callable[..., None]] = {
            "open": self._opened,
            "os.listdir": self._listed,
            "os.scandir": self._scanned,
            "sqlite3.connect": self._connected,
            "ctypes.dlopen": self._connected,
            "unflake.stat": self._asked,
        }
        actions.update((f"os.{name}", self._changed) for name in CHANGES)
        actions.update((f"os.{name}", self._changed_two) for name in TWICE)
        return actions

    def _wrap(self, name: str) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def watched(path: Any, *args: Any, **kwargs: Any) -> Any:
            folder = kwargs.get("dir_fd")
            if name != "open":
                self._usage.audit("unflake.stat", (path, folder))
            elif folder is not None:
                self._usage.audit("open", (path, None, args[0] if args else kwargs.get("flags"), folder))
            return original(path, *args, **kwargs)

        for ability in ("dir_fd", "fd", "follow_symlinks", "effective_ids"):
            able = getattr(os, f"supports_{ability}")
            if original in able:
                able.add(watched)
        setattr(os, name, watched)
        # Until Python 3.10 pathlib keeps its own references.
        accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
        if getattr(accessor, name, None) is original:
            setattr(accessor, name, staticmethod(watched))

    def _opened(self, path: Any, mode: Any, flags: Any, folder: Any = None) -> None:
        is_written = isinstance(flags, int) and (flags & os.O_ACCMODE) == os.O_WRONLY
        self._use("looked" if is_written else "read", path, folder)

    def _listed(self, path: Any = None) -> None:
        self._use("listed", "." if path is None else path)

    def _scanned(self, path: Any = None) -> None:
        self._use("listed", "." if path is None else path)
        # Entries know the status of their files. The standard library keeps them to itself.
        if not self._usage.is_skipped(sys._getframe(2).f_code.co_filename):
            self._use("scanned", "." if path is None else path)

    def _connected(self, path: Any, *_more: Any) -> None:
        if isinstance(path, str) and path.startswith("file:"):
            path = path[len("file:") :].split("?")[0]
        if path is not None:
            self._use("read", path)

    def _asked(self, path: Any, folder: Any) -> None:
        self._use("looked" if self._is_question(sys._getframe(3)) else "measured", path, folder)

    def _is_question(self, frame: Any) -> bool:
        usage = self._usage
        while frame is not None:
            is_standard = usage.is_standard(frame)
            if not is_standard or frame.f_globals["__name__"] in ASKERS:
                code = frame.f_code
                if not is_standard and not usage.is_skipped(code.co_filename):
                    return False
                if code.co_name in QUESTIONS:
                    return True
            frame = frame.f_back
        return False

    def _changed(self, path: Any, *more: Any) -> None:
        self._use("looked", path, more[-1] if more else None)

    def _changed_two(self, one: Any, other: Any, *folders: Any) -> None:
        self._use("looked", one, folders[0] if len(folders) == 2 else None)
        self._use("looked", other, folders[-1] if folders else None)

    def _use(self, what: str, path: Any, folder: Any = None) -> None:
        text = self._spell(what, path, folder)
        if not text or text.startswith(SYSTEM) or text.startswith(HERE):
            return
        usage = self._usage
        user = usage.user(caller())
        is_source = text.endswith(".py") or "__pycache__" in text
        if user is None or is_framework(user):
            # An import shows as a module; pytest reads sources to rewrite them and to show failures.
            if what == "read" and any(folder in text for folder in METADATA):
                return  # It looks for plugins, and those that it loads show as modules.
            if what == "read":
                what = "source" if is_source else "read"
            elif what in ("looked", "measured") and os.path.basename(text) in TELLING:
                what = "telling"
            else:
                return
        elif "__pycache__" in text and what == "read":
            text = source_of(text)
        # An installed copy of the project has its data files there.
        if usage.is_everything(text) or (what == "read" and not usage.is_skipped(text)):
            usage.note(what, usage.absolute(text))

    def _spell(self, what: str, path: Any, folder: Any) -> str:
        """The path, absolute if it is relative to an open folder; empty if there is nothing to tell."""
        if isinstance(path, int):
            # Whoever opened the descriptor was seen.
            return self._path_of(path) if what in ("listed", "scanned") else ""
        text = os.fsdecode(path)
        if isinstance(folder, int) and folder >= 0 and not text.startswith("/"):
            return os.path.join(self._path_of(folder), text)
        return text

    def _path_of(self, descriptor: int) -> str:
        if hasattr(fcntl, "F_GETPATH"):
            path: Tuple[bytes, ...] = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).partition(b"\0")
            return os.fsdecode(path[0])
        return self._readlink(f"/proc/self/fd/{descriptor}")


def caller() -> Any:
    """The frame from which a watched call came; `None` if the interpreter itself made it."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__file__")).startswith(HERE):
        frame = frame.f_back
    return frame


def source_of(cached: str) -> str:
    """The source of a file of bytecode."""
    folder, name = os.path.split(cached)
    return os.path.join(os.path.dirname(folder), name.split(".")[0] + ".py")


def is_framework(file: str) -> bool:
    # Files that pytest's own testing tool reads are read for the test.
    return ("/_pytest/" in file or "/pluggy/" in file) and not file.endswith("/pytester.py")

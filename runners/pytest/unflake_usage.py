"""Watches what a run uses: code, files, modules, native libraries, and the processes it starts.

Each fact is one JSON array on a line of its own, appended to a file at once, so that a crash loses
nothing and child processes can write to the same file. `docs/protocol.md` lists the facts. It says
what was used, not what that means.

It works before the first import of the project, by audit hooks, a tracer, a finder that finds nothing,
and wrappers around the few calls that have no audit event.
"""

import functools
import json
import os
import sys
import sysconfig
import threading
from typing import Any, Callable, Dict, Optional, Set, Tuple

from unflake_channel import lift

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = "UNFLAKE_USAGE"
STANDARD = tuple({sysconfig.get_path(key) + "/" for key in ("stdlib", "platstdlib")})
INSTALLED = ("/site-packages/", "/dist-packages/")
SYSTEM = ("/proc/", "/sys/", "/dev/")
# What pytest looks for by itself and that changes what it does with a test.
TELLING = ("conftest.py", "__init__.py")
SKIPPED, MODULES, EVERYTHING = range(3)


def watch(path: str) -> "Usage":
    """Watches from now on, in this process and in the Python processes that it starts."""
    usage = Usage(path)
    folder = os.path.join(HERE, "children")
    os.environ[FILE] = path
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder + (os.pathsep + inherited if inherited else "")
    usage.start()
    return usage


class Usage:
    """The file of facts, and the hooks that fill it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._write, self._fstat, self._encode = os.write, os.fstat, json.JSONEncoder().encode
        self._stat, self._getpid, self._busy = os.stat, os.getpid, threading.local()
        self._abspath = os.path.abspath
        self._said: Set[Any] = set()
        self._spawned = 0
        self._places: Dict[str, int] = {}
        self._codes: Dict[int, Any] = {}
        self._search: Tuple[str, ...] = ()
        self._open()

    def _open(self) -> None:
        fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._fd = lift(fd)
        os.close(fd)
        self._inode = self._fstat(self._fd).st_ino

    def start(self) -> None:
        self.note("process", os.getpid(), os.getppid())
        for module in list(sys.modules.values()):
            # What ran before us was not seen running.
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self._place(file) != SKIPPED:
                self.note("whole", self._absolute(file))
        for name in ("stat", "lstat", "access", "readlink"):
            self._wrap(name)
        sys.meta_path.insert(0, Seeker(self))
        self._actions: Dict[str, Callable[..., None]] = {
            "open": self._opened,
            "os.listdir": self._listed,
            "os.scandir": self._listed,
            "sqlite3.connect": self._connected,
            "import": self._imported,
            "ctypes.dlopen": self._connected,
            "object.__getattr__": self._inspected,
            "subprocess.Popen": self._started,
            "os.exec": self._started,
            "os.posix_spawn": self._started,
            "os.system": self._commanded,
        }
        sys.addaudithook(self._audit)
        self._trace()

    def note(self, *fact: Any) -> None:
        """Writes a fact, once."""
        if fact in self._said:
            return
        self._said.add(fact)
        line = (self._encode(fact) + "\n").encode("ascii")
        try:
            is_ours = self._fstat(self._fd).st_ino == self._inode
        except OSError:
            is_ours = False
        if not is_ours:  # A test closed the descriptor, and may have opened another file under it.
            self._open()
        self._write(self._fd, line)

    # --- code -----------------------------------------------------------------------------------

    def _trace(self) -> None:
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            tool = next(number for number in (4, 3, 2, 1, 0, 5) if monitoring.get_tool(number) is None)
            monitoring.use_tool_id(tool, "unflake")
            monitoring.register_callback(tool, monitoring.events.PY_START, self._monitored)
            monitoring.set_events(tool, monitoring.events.PY_START)
        else:
            import _thread

            threading.settrace(self._traced)
            sys.settrace(self._traced)
            # From now on whoever sets another tracer takes this one away; and a bare thread has none.
            self._actions["sys.settrace"] = self._tracer_set
            bare = _thread.start_new_thread

            @functools.wraps(bare)
            def start_new_thread(*args: Any, **kwargs: Any) -> Any:
                self.note("blind", "a thread was started without the module threading")
                return bare(*args, **kwargs)

            _thread.start_new_thread = start_new_thread

    def _tracer_set(self) -> None:
        setter = sys._getframe(2).f_code.co_filename
        # These two set what was set before.
        if not (setter.startswith(STANDARD) and os.path.basename(setter) in ("threading.py", "doctest.py")):
            self.note("blind", "another tracer was set")

    def _monitored(self, code: Any, _offset: int) -> Any:
        self._ran(code, sys._getframe(1).f_globals)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _traced(self, frame: Any, _event: str, _arg: Any) -> None:
        code = frame.f_code
        if id(code) not in self._codes:
            self._codes[id(code)] = code  # Kept alive: no other code gets its id.
            self._ran(code, frame.f_globals)

    def _ran(self, code: Any, variables: Dict[str, Any]) -> None:
        place = self._place(code.co_filename)
        if place == SKIPPED:
            return
        if code.co_name == "<module>":
            name = variables.get("__name__")
            self.note("module", self._absolute(code.co_filename), name if isinstance(name, str) else "")
        elif place == EVERYTHING:
            self.note("code", self._absolute(code.co_filename), code.co_firstlineno)

    def _inspected(self, owner: Any, attribute: str) -> None:
        """A function's code is used by whoever takes it, as compilers of Python do, without a call."""
        if attribute != "__code__":
            return
        taker = sys._getframe(2).f_code.co_filename
        if self._place(taker) != SKIPPED and not is_framework(taker):
            self._take(owner.__code__)

    def _take(self, code: Any) -> None:
        if not hasattr(code, "co_consts"):
            return
        self._ran(code, {})
        for inner in code.co_consts:
            self._take(inner)

    # --- files ----------------------------------------------------------------------------------

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        is_written = isinstance(flags, int) and (flags & os.O_ACCMODE) == os.O_WRONLY
        self._use("looked" if is_written else "read", path)

    def _listed(self, path: Any = None) -> None:
        self._use("listed", "." if path is None else path)

    def _connected(self, path: Any, *_more: Any) -> None:
        if isinstance(path, str) and path.startswith("file:"):
            path = path[len("file:") :].split("?")[0]
        if path is not None:
            self._use("read", path)

    def _use(self, what: str, path: Any) -> None:
        if isinstance(path, int):
            return  # Whoever opened the descriptor was seen.
        text = os.fsdecode(path)
        if not text or text.startswith(SYSTEM) or text.startswith(HERE):
            return
        user = self._user()
        is_source = text.endswith(".py") or "__pycache__" in text
        if user is None or is_framework(user):
            # An import shows as a module; pytest reads sources to rewrite them and to show failures.
            if what == "listed" or (what == "read" and is_source):
                return
            if what == "looked" and os.path.basename(text) not in TELLING:
                return
        place = self._place(text)
        # An installed copy of the project has its data files there.
        if place == EVERYTHING or (place == MODULES and what == "read"):
            self.note(what, self._absolute(text))

    def _user(self) -> Optional[str]:
        """The file of the code that wants a file; `None` if it is the import system."""
        frame: Any = sys._getframe(4)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return None
            if self._place(name) != SKIPPED:
                return str(name)
            frame = frame.f_back
        return ""

    def _wrap(self, name: str) -> None:
        original = getattr(os, name)

        @functools.wraps(original)
        def watched(path: Any, *args: Any, **kwargs: Any) -> Any:
            self._audit("open", (path, None, os.O_WRONLY))
            return original(path, *args, **kwargs)

        for ability in ("dir_fd", "fd", "follow_symlinks", "effective_ids"):
            able = getattr(os, f"supports_{ability}")
            if original in able:
                able.add(watched)
        setattr(os, name, watched)
        # Until Python 3.10 pathlib keeps its own references.
        accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
        if accessor is not None and hasattr(accessor, name):
            setattr(accessor, name, staticmethod(watched))

    # --- modules, libraries, processes ----------------------------------------------------------

    def _imported(self, _name: Any, path: Any, *_more: Any) -> None:
        if path is not None:
            self.note("loaded", self._absolute(os.fsdecode(path)))

    def sought(self, name: str, folders: Any) -> None:
        if folders is None and tuple(sys.path) != self._search:
            self._search = tuple(sys.path)
            self.note("path", *[self._absolute(str(folder) or ".") for folder in self._search])
        inside = [] if folders is None else [self._absolute(str(folder)) for folder in folders]
        self.note("sought", name, *inside)

    def _started(self, program: Any, args: Any, *_more: Any) -> None:
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args or [])
        names = [os.fsdecode(word)[:200] for word in [program or words[0], *words[:4]]]
        self._spawned += 1
        self.note("spawned", self._getpid(), self._spawned, *names)

    def _commanded(self, command: Any) -> None:
        self._started("sh", ["sh", "-c", command])

    # --- the ground -----------------------------------------------------------------------------

    def _audit(self, event: str, args: Tuple[Any, ...]) -> None:
        action = self._actions.get(event)
        if action is None or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            action(*args)
        except Exception as error:  # Nothing of ours may reach the project.
            self.note("blind", f"{event}: {type(error).__name__}: {error}"[:300])
        finally:
            self._busy.now = False

    def _place(self, file: str) -> int:
        """How much of what happens in a file is worth telling."""
        place = self._places.get(file)
        if place is None:
            if file.startswith("<") or file.startswith(HERE):
                place = SKIPPED
            elif any(folder in file for folder in INSTALLED):
                place = MODULES
            elif file.startswith(STANDARD):
                place = SKIPPED
            else:
                place = EVERYTHING
            self._places[file] = place
        return place

    def _absolute(self, file: str) -> str:
        return file if file.startswith("/") else self._abspath(file)


class Seeker:
    """A finder that finds nothing and tells what was looked for: a deleted file may have been that."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        self._usage.sought(name, path)


def is_framework(file: str) -> bool:
    return "/_pytest/" in file or "/pluggy/" in file

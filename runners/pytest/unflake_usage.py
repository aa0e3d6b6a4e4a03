"""Watches what a run uses: code, files, modules, native libraries, and the processes it starts.

Each fact is one JSON array on a line of its own, appended to a file at once, so that a crash loses
nothing and child processes can write to the same file. `docs/protocol.md` lists the facts. It says
what was used, not what that means.

It works before the first import of the project. Code is watched in `unflake_code`, files in
`unflake_files`; here are modules, libraries and processes, and the ground on which all stand.
"""

import functools
import json
import os
import sys
import sysconfig
import threading
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from unflake_channel import lift
from unflake_code import Code
from unflake_files import Files, is_framework
from unflake_services import Services

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = "UNFLAKE_USAGE"
STANDARD = tuple({sysconfig.get_path(key) + "/" for key in ("stdlib", "platstdlib")})
INSTALLED = ("/site-packages/", "/dist-packages/")
# The degrees to which events in a file are worth reporting.
SKIPPED, MODULES, EVERYTHING = range(3)
# The modules of the import system: what they read, somebody else may want.
IMPORTERS = ("importlib._bootstrap", "_frozen_importlib")
# The methods by which a loader reads a module for somebody who does not import it.
GETTERS = ("get_data", "get_source", "get_code")


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
        self._open, self._close, self._write, self._fstat = os.open, os.close, os.write, os.fstat
        self._encode, self._getpid, self._busy = json.JSONEncoder().encode, os.getpid, threading.local()
        self._abspath, self._lift, self._home = os.path.abspath, lift, os.getcwd()
        self._said: Set[Any] = set()
        self._waiting: List[bytes] = []
        self._spawned = 0
        self._places: Dict[str, int] = {}
        # By their addresses, the variables of modules and whether these are Python's own.
        self._modules: Dict[int, Tuple[Any, bool]] = {}
        self._search: Tuple[str, ...] = ()
        self._seeker = Seeker(self)
        self._connect()

    def _connect(self) -> None:
        fd = self._open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._fd = self._lift(fd)
        self._close(fd)
        self._identity = self._identify()

    def move(self, name: str) -> None:
        """Writes into another file of the same folder from now on: this is a copy of the process."""
        self._path = os.path.join(os.path.dirname(self._path), name)
        self._close(self._fd)
        self._connect()
        os.environ[FILE] = self._path
        self.note("process", self._getpid(), os.getppid())

    def _identify(self) -> Tuple[int, int]:
        status = self._fstat(self._fd)
        return status.st_dev, status.st_ino

    def start(self) -> None:
        self.note("process", os.getpid(), os.getppid())
        for module in list(sys.modules.values()):
            # Code that ran before us was not seen running.
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self.place(file) != SKIPPED:
                self.note("whole", self.absolute(file))
        sys.meta_path.insert(0, self._seeker)  # type: ignore[arg-type,unused-ignore]
        self._actions: Dict[str, Callable[..., None]] = {
            "import": self._imported,
            "ctypes.dlsym": self._called,
            "subprocess.Popen": self._popened,
            "os.exec": self._started,
            "os.posix_spawn": self._started,
            "os.system": self._commanded,
        }
        self._wrap_spawn()
        self._actions.update(Files(self).start())
        self._actions.update(Services(self).actions())
        code = Code(self)
        self._actions.update(code.actions())
        sys.addaudithook(self.audit)
        code.start()

    def note(self, *fact: Any) -> None:
        """Writes a fact, once."""
        if fact in self._said:
            return
        self._said.add(fact)
        self._waiting.append((self._encode(fact) + "\n").encode("ascii"))
        was_busy = getattr(self._busy, "now", False)
        self._busy.now = True
        try:
            if not self._is_connected():
                # A test closed the descriptor, and may have opened another file under it.
                self._connect()
            while self._waiting:
                self._write(self._fd, self._waiting[0])
                del self._waiting[0]
        except OSError:
            pass  # No descriptor is free: it is written with the next fact.
        finally:
            self._busy.now = was_busy

    def _is_connected(self) -> bool:
        try:
            return self._identify() == self._identity
        except OSError:
            return False

    # --- modules, libraries, processes ----------------------------------------------------------

    def _imported(self, name: Any, path: Any, *_more: Any) -> None:
        if path is not None:
            self.note("loaded", self.absolute(os.fsdecode(path)))
        elif name in sys.builtin_module_names:
            self.note("loaded", name)
        else:
            # The finder below may have been taken away.
            package = name.rpartition(".")[0]
            folders = getattr(sys.modules.get(package), "__path__", None)
            if folders is not None or not package:
                self.sought(name, folders)

    def sought(self, name: str, folders: Any) -> None:
        if folders is None and tuple(sys.path) != self._search:
            self._search = tuple(sys.path)
            self.note("path", *[self.absolute(str(folder) or ".") for folder in self._search])
        inside = [] if folders is None else [self.absolute(str(folder)) for folder in folders]
        self.note("sought", name, *inside)

    def _called(self, _library: Any, _symbol: Any) -> None:
        user = self.user(sys._getframe(2))
        if user is not None and not is_framework(user):
            self.note("loaded", "ctypes")

    def _popened(self, program: Any, args: Any, folder: Any = None, *_more: Any) -> None:
        self._started(program, args, folder=folder)

    def _started(self, program: Any, args: Any, *_more: Any, folder: Any = None) -> None:
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args or [])
        names = [os.fsdecode(word)[:200] for word in [program or words[0], *words[:4]]]
        if "/" in names[0]:
            names[0] = self.absolute(os.path.join(os.fsdecode(folder or ""), names[0]))
        self._spawned += 1
        self.note("spawned", self._getpid(), self._spawned, *names)

    def _commanded(self, command: Any) -> None:
        self._started("sh", ["sh", "-c", command])

    def _wrap_spawn(self) -> None:
        """The processes of multiprocessing have no audit event."""
        import _posixsubprocess

        bare = _posixsubprocess.fork_exec

        @functools.wraps(bare)
        def fork_exec(args: Any, executables: Any, *more: Any) -> Any:
            if os.path.basename(sys._getframe(1).f_code.co_filename) != "subprocess.py":
                self.audit("subprocess.Popen", (executables[0], args))
            return bare(args, executables, *more)

        _posixsubprocess.fork_exec = fork_exec

    # --- the ground -----------------------------------------------------------------------------

    def audit(self, event: str, args: Tuple[Any, ...]) -> None:
        action = self._actions.get(event)
        if action is None:
            return
        if event == "object.__getattr__" and args[1] != "__code__":
            return  # Every frame and traceback has such events.
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            # There are none any more while the interpreter ends.
            finders = sys.meta_path or [self._seeker]
            if not any(finder is self._seeker for finder in finders):
                self.note("missed", "the finders of modules were replaced")
            action(*args)
        except Exception as error:  # Nothing of ours may reach the project.
            self.miss(event, error)
        finally:
            self._busy.now = False

    def miss(self, what: str, error: Exception) -> None:
        self.note("missed", f"{what}: {type(error).__name__}: {error}"[:300])

    def place(self, file: str) -> int:
        place = self._places.get(file)
        if place is None:
            # A project may itself lie in such a folder.
            inside = file[len(self._home) :] if file.startswith(self._home) else file
            if file.startswith("<") or file.startswith(HERE):
                place = SKIPPED
            elif any(folder in inside for folder in INSTALLED):
                place = MODULES
            elif file.startswith(STANDARD):
                place = SKIPPED
            else:
                place = EVERYTHING
            self._places[file] = place
        return place

    def is_everything(self, file: str) -> bool:
        return self.place(file) == EVERYTHING

    def is_skipped(self, file: str) -> bool:
        return self.place(file) == SKIPPED

    def user(self, frame: Any) -> Optional[str]:
        """The file of the code that wants something; `None` if it is the import system."""
        if frame is None:
            return None  # The interpreter itself reads the program that it is to run.
        while frame is not None:
            if not self.is_standard(frame):
                name = frame.f_code.co_filename
                if name.startswith("<frozen importlib"):
                    frame = outermost(frame)
                    if frame is None:
                        return None
                elif not self.is_skipped(name):
                    return str(name)
            frame = frame.f_back
        return ""

    def is_standard(self, frame: Any) -> bool:
        """Whether a frame is of a module that is skipped; `False` where only its code can tell.

        It is asked for every frame of many stacks, and `f_code` has an audit event of its own.
        """
        variables = frame.f_globals
        key = object.__hash__(variables)
        if key not in self._modules:
            name, file = variables.get("__name__"), variables.get("__file__")
            if not isinstance(name, str) or getattr(sys.modules.get(name), "__dict__", None) is not variables:
                return False
            is_skipped = isinstance(file, str) and self.is_skipped(file) and not name.startswith(IMPORTERS)
            self._modules[key] = variables, is_skipped
        return self._modules[key][1]

    def absolute(self, file: str) -> str:
        return file if file.startswith("/") else self._abspath(file)


class Seeker:
    """A finder that finds nothing and tells what was looked for: a deleted file may have been that."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        self._usage.sought(name, path)


def outermost(frame: Any) -> Any:
    """The loader's frame that somebody called who wants a file's content; `None` if it is an import."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith("<frozen importlib"):
        frame, caller = caller, caller.f_back
    is_import = frame.f_code.co_name not in GETTERS or caller is None
    if is_import or "runpy" in caller.f_code.co_filename:
        return None
    return frame

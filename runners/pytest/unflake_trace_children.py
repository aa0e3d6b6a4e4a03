"""Follows the Python processes that traced code starts with `subprocess` or `multiprocessing`.

Whatever looks like Python gets one more variable, which says where the trace is, and our `sitecustomize`
first in its `PYTHONPATH`. That takes both away again before anything of the project's runs. The test's own
environment stays as it is, and so does that of any other program.
"""

import json
import os
import runpy
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any, Callable, List, NamedTuple, Optional

VARIABLE = "UNFLAKE_TRACE"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "children")
# The place of the environment among the arguments of `fork_exec`, in every Python from 3.8 on.
ENVIRONMENT = 5
# They pass their environment on to what they start.
SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"env"))


class Birth(NamedTuple):
    """The facts that a started process needs to write its part of a trace."""

    path: str
    folder: str
    name: str
    parent: str
    began: int
    python_path: Optional[str]


class Children:
    """Stands before the function that starts processes."""

    def __init__(self, birth: Callable[[], Optional[Birth]]) -> None:
        self._birth = birth
        # Tests put others in the place of these functions.
        self._open, self._read, self._close = os.open, os.read, os.close

    def start(self) -> None:
        import _posixsubprocess

        bare: Any = _posixsubprocess.fork_exec

        def fork_exec(*given: Any) -> Any:
            if len(given) > ENVIRONMENT and self._is_python(given[1]):
                birth = self._birth()
                if birth is not None:
                    environment = with_birth(given[ENVIRONMENT], birth)
                    given = (*given[:ENVIRONMENT], environment, *given[ENVIRONMENT + 1 :])
            return bare(*given)

        _posixsubprocess.fork_exec = fork_exec
        subprocess: Any = sys.modules.get("subprocess")
        if subprocess is not None:
            subprocess._USE_POSIX_SPAWN = False
            if hasattr(subprocess, "_fork_exec"):
                subprocess._fork_exec = fork_exec

    def _is_python(self, programs: Any) -> bool:
        """Whether one of the places where a program is looked for has a Python, or what may start one."""
        for program in programs:
            name = os.path.basename(os.fsencode(program))
            if name.startswith(b"python") or name in SHELLS or self._is_script(program):
                return True
        return False

    def _is_script(self, program: Any) -> bool:
        try:
            handle = self._open(program, os.O_RDONLY)
        except OSError:
            return False
        try:
            first = self._read(handle, 200).split(b"\n")[0]
        except OSError:
            return False
        finally:
            self._close(handle)
        return first.startswith(b"#!") and b"python" in first


def with_birth(environment: Optional[List[bytes]], birth: Birth) -> List[bytes]:
    """The environment of a process, from which it knows whose child it is."""
    if environment is None:
        environment = [name + b"=" + value for name, value in os.environb.items()]
    own = {name: name.encode() + b"=" for name in ("PYTHONPATH", VARIABLE)}
    known = [one[len(own["PYTHONPATH"]) :] for one in environment if one.startswith(own["PYTHONPATH"])]
    birth = birth._replace(python_path=os.fsdecode(known[0]) if known else None)
    path = os.fsencode(FOLDER) + (os.pathsep.encode() + known[0] if known and known[0] else b"")
    kept = [one for one in environment if not one.startswith(tuple(own.values()))]
    return [*kept, own["PYTHONPATH"] + path, own[VARIABLE] + json.dumps(birth).encode()]


def settle_birth(text: str) -> Birth:
    """In a process that was started: takes in who started it, and leaves nothing of that for the project."""
    birth = Birth(*json.loads(text))
    del os.environ[VARIABLE]
    if birth.python_path is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = birth.python_path
    return birth


def rewrite_script(tracer: Any) -> None:
    """Has the file that this process is to run rewritten, if it is the project's."""
    script = os.path.abspath(sys.argv[0])
    file = tracer.inside(script)
    if file is not None and os.path.isfile(script):
        sys.path_hooks.insert(0, Script(tracer, script, file).hook)


class Script:
    """Has the file that this process runs loaded as a module would be, because only those can be rewritten.

    Python asks the hooks of its search path whether what it is to run is a folder or an archive with a
    `__main__` in it. Once it runs, all is as if nobody had said so.
    """

    def __init__(self, tracer: Any, path: str, file: str) -> None:
        self._tracer, self._path, self._file = tracer, path, file

    def hook(self, path: str) -> "Script":
        if os.path.abspath(path) != self._path:
            raise ImportError(path)
        self._path = path  # As Python itself names it.
        return self

    def find_spec(self, name: str, _target: Any = None) -> Optional[ModuleSpec]:
        if name != "__main__":
            return None
        loader: Any = ScriptLoader(name, self._path)
        loader.script = self
        return ModuleSpec(name, loader, origin=self._path)

    def load(self, source: bytes) -> Any:
        make = lambda: self._tracer.compile(source, self._path, self._file)  # noqa: E731
        code = self._tracer.load(self._path, self._file, make)
        self._leave(code)
        return code

    def _leave(self, code: Any) -> None:
        """Removes what would not be there without us, as soon as the script begins."""
        sys.path_hooks.remove(self.hook)
        sys.path_importer_cache.pop(self._path, None)
        if getattr(sys.flags, "safe_path", False):
            del sys.path[0]
        else:
            sys.path[0] = os.path.dirname(os.path.realpath(self._path))

        def began(frame: Any, event: str, _argument: Any) -> None:
            if event == "call" and frame.f_code is code:
                sys.setprofile(None)
                values = frame.f_globals
                loader = SourceFileLoader("__main__", self._path)
                values.update(__spec__=None, __package__=None, __cached__=None, __loader__=loader)
                values["__file__"] = self._path

        sys.setprofile(began)
        sys.excepthook = without_runpy


class ScriptLoader(SourceFileLoader):
    """The loader of a script, which `runpy` asks for its code."""

    script: Script

    def get_code(self, fullname: str) -> Any:
        return self.script.load(self.get_data(self.path))


def without_runpy(kind: Any, error: Any, trace: Any) -> None:
    """Prints an exception that has left the script as Python does, without the frames that loaded it."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.__excepthook__(kind, error, trace)

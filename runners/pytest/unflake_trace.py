"""Tracing: the project's modules are rewritten as they are loaded, and a run of a test is recorded.

Only code below the project's folder is rewritten, never what is installed. Nothing is written beside the
project's files: rewritten code must not be found by a later plain run.
"""

import ast
import builtins
import contextlib
import os
import sys
import tempfile
import threading
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any, Dict, Iterator, Optional

from unflake_trace_calls import Calls, quiet
from unflake_trace_sites import BEGIN, END, WAITED, WAITS, instrument

HERE = os.path.dirname(os.path.abspath(__file__))


class Tracer:
    """Rewrites what is loaded from now on, and records runs."""

    def __init__(self, path: str, folder: str) -> None:
        self._path, self._folder = path, os.path.realpath(folder)
        self._calls: Optional[Calls] = None

    def start(self) -> None:
        self._connect(None)
        sys.dont_write_bytecode = True
        sys.meta_path.insert(0, Finder(self))
        self._rewrite_tests()
        self._follow_threads()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """A forked child is not followed, and must not write into its parent's trace."""
        if self._calls is not None:
            self._calls.forget()
            self._connect(None)

    def inside(self, file: str) -> Optional[str]:
        """A file's path from the project's folder; `None` if it is not the project's own."""
        file = os.path.realpath(file)
        if not file.startswith(self._folder + os.sep) or file.startswith(HERE + os.sep):
            return None
        if "-packages" + os.sep in file or file.startswith(os.path.realpath(sys.prefix) + os.sep):
            return None
        return os.path.relpath(file, self._folder)

    def _rewrite_tests(self) -> None:
        """pytest loads tests by itself, because it rewrites their assertions: that comes first."""
        from _pytest.assertion import rewrite

        original = rewrite.rewrite_asserts

        def rewrite_asserts(module: ast.Module, source: bytes, path: Any = None, config: Any = None) -> None:
            original(module, source, path, config)
            file = self.inside(str(path)) if path else None
            if file is not None:
                instrument(module, file)

        def read_nothing(*_args: Any, **_options: Any) -> None:
            """What is in the cache was not rewritten by us."""

        patched: Any = rewrite
        patched.rewrite_asserts, patched._read_pyc = rewrite_asserts, read_nothing

    def _follow_threads(self) -> None:
        original = threading.Thread.start

        def start(thread: Any) -> None:
            if self._calls is not None:
                self._calls.starts(thread)
            original(thread)

        start.__qualname__, start.__module__ = original.__qualname__, original.__module__
        patched: Any = threading.Thread
        patched.start = start

    def _connect(self, calls: Optional[Calls]) -> None:
        """Has rewritten code tell its calls to these, or to nobody."""
        self._calls = calls
        names: Dict[str, Any] = quiet()
        if calls is not None:
            names = {name: getattr(calls, name) for name in names}
        for name, function in zip((BEGIN, END, WAITS, WAITED), names.values()):
            setattr(builtins, name, function)

    @contextlib.contextmanager
    def recording(self, item: Any) -> Iterator[None]:
        """Records what happens meanwhile, and what is left over then."""
        calls = Calls(self._path, self._folder)
        before = leftovers()
        self._connect(calls)
        try:
            yield
        finally:
            self._connect(None)
            file, line, _ = item.location
            for what, number in leftovers().items():
                calls.leftover((str(file), (line or 0) + 1), what, number - before[what])
            calls.close()


class Finder:
    """Finds modules as Python does, and loads those of the project rewritten."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            if type(spec.loader) is SourceFileLoader and spec.origin:
                file = self._tracer.inside(spec.origin)
                if file is not None:
                    spec.loader = Loader(spec.loader.name, spec.loader.path, file)
            return spec
        return None


class Loader(SourceFileLoader):
    """Loads a module of the project, rewritten."""

    def __init__(self, name: str, path: str, file: str) -> None:
        super().__init__(name, path)
        self._file = file

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, **_options: Any) -> Any:  # type: ignore[override]
        tree = ast.parse(data, filename=path)
        instrument(tree, self._file)
        return compile(tree, path, "exec", dont_inherit=True)


def leftovers() -> Dict[str, int]:
    """How much there is of what a test should give back."""
    found = {"threads left over": threading.active_count()}
    try:
        found["file descriptors left over"] = len(os.listdir("/proc/self/fd"))
        children = f"/proc/self/task/{os.getpid()}/children"
        with open(children) as file:
            found["child processes left over"] = len(file.read().split())
    except OSError:  # Another system than Linux, or one that does not tell.
        found.setdefault("file descriptors left over", 0)
        found.setdefault("child processes left over", 0)
    try:
        found["temporary files left over"] = len(os.listdir(tempfile.gettempdir()))
    except OSError:
        found["temporary files left over"] = 0
    return found

"""Tracing: the project's modules are rewritten as they are loaded, and a run of a test is recorded.

Only code below the project's folder is rewritten, never what is installed. Nothing is written beside the
project's files: rewritten code must not be found by a later plain run.
"""

import ast
import atexit
import builtins
import contextlib
import os
import sys
import threading
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any, Callable, Dict, Iterator, Optional

from unflake_trace_cache import Cache, settle
from unflake_trace_calls import Calls
from unflake_trace_children import Birth, Children, rewrite_script, settle_birth
from unflake_trace_leftovers import difference, leftovers
from unflake_trace_libraries import CALLED, instrument_library, library_path
from unflake_trace_sites import FILES, PENDING, PREFIX, instrument
from unflake_trace_strand import CLOCK, dispatch, quiet

# Somebody may rewrite the code for other ends too, and take the place of `instrument` for that.
plain_instrument = instrument
HERE = os.path.dirname(os.path.abspath(__file__))


class Local(threading.local):
    """The functions that rewritten code calls if there are several threads: each thread finds its own."""

    def __init__(self, calls: Calls) -> None:
        vars(self).update(calls.functions())


class Tracer:
    """Rewrites what is loaded from now on, and records runs."""

    def __init__(self, path: str, folder: str) -> None:
        self._path, self._folder = path, os.path.realpath(folder)
        self._calls: Optional[Calls] = None
        self._cache = Cache(os.path.join(os.path.dirname(path), "rewritten"))
        self._exit, self._clock = os._exit, CLOCK[0]

    def start(self) -> None:
        self._connect(None)
        sys.meta_path.insert(0, Finder(self))
        self._rewrite_tests()
        self._follow_others()

    def _follow_others(self) -> None:
        """Threads, forked copies and Python processes are followed."""
        self._follow_threads()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._follow_fork)
            Children(self._birth).start()

    def _birth(self) -> Optional[Birth]:
        """The facts that a process needs if it starts now; nothing while nothing is recorded."""
        return None if self._calls is None else self._calls.birth()

    def follow(self, birth: Birth) -> None:
        """Writes the part of a process that a traced one has started, from its beginning to its end."""
        calls = Calls(self._path, self._folder, birth)
        sys.meta_path.insert(0, Finder(self))
        self._follow_others()
        rewrite_script(self)
        self._write_own(calls)

    def _follow_fork(self) -> None:
        """A forked child writes its own part of the trace, and ends it when it ends."""
        if self._calls is None:
            return
        self._calls.forked()
        self._write_own(self._calls)

    def _write_own(self, calls: Calls) -> None:
        self._connect(calls)
        atexit.register(calls.close)
        patched: Any = os
        patched._exit = self._leave

    def _leave(self, status: int) -> None:
        if self._calls is not None:
            self._calls.close()
        self._exit(status)

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

        rewrite_asserts, rewrite_test = rewrite.rewrite_asserts, rewrite._rewrite_test

        def rewrite_both(module: ast.Module, source: bytes, path: Any = None, config: Any = None) -> None:
            rewrite_asserts(module, source, path, config)
            file = self.inside(str(path)) if path else None
            if file is not None:
                instrument(module, file)

        def rewrite_or_load(path: Any, config: Any) -> Any:
            file = self.inside(str(path))
            if file is None:
                return rewrite_test(path, config)
            return os.stat(path), self.load(str(path), file, lambda: rewrite_test(path, config)[1])

        def keep_nothing(*_args: Any, **_options: Any) -> None:
            """What is in pytest's cache was not rewritten by us, and what we rewrite must not come there."""

        patched: Any = rewrite
        patched.rewrite_asserts, patched._rewrite_test = rewrite_both, rewrite_or_load
        patched._read_pyc = patched._write_pyc = keep_nothing

    def load(self, path: str, file: str, make: Callable[[], Any]) -> Any:
        """The rewritten code of a file of the project's, as it was kept or as it is made now."""
        FILES[path] = file
        is_ours = instrument is plain_instrument
        code = self._cache.load(path, file, make) if is_ours else settle(make(), PENDING.pop(file, []))
        if self._calls is not None:
            self._calls.grow()
        return code

    def load_library(self, path: str, file: str, make: Callable[[], Any]) -> Any:
        """The code of a file of an installed package, in which some calls are told."""
        code = self._cache.load(path, file, make)
        if self._calls is not None:
            self._calls.grow()
        return code

    def compile(self, source: Any, path: str, file: str) -> Any:
        tree = ast.parse(source, filename=path)
        instrument(tree, file)
        return compile(tree, path, "exec", dont_inherit=True)

    def _follow_threads(self) -> None:
        original = threading.Thread.start

        def start(thread: Any) -> None:
            calls = self._calls
            if calls is not None:
                calls.starts(thread)
                self._separate(calls)
            original(thread)

        start.__qualname__, start.__module__ = original.__qualname__, original.__module__
        patched: Any = threading.Thread
        patched.start = start

    def _connect(self, calls: Optional[Calls]) -> None:
        """Has rewritten code tell its calls to these, or to nobody."""
        self._calls, self._is_separate = calls, False
        connect(quiet() if calls is None else calls.functions())

    def _separate(self, calls: Calls) -> None:
        """From now on there is more than one thread."""
        if not self._is_separate:
            self._is_separate = True
            local = Local(calls)
            connect(dispatch(lambda: local))

    def note(self, error: BaseException) -> None:
        """Takes in an exception that has left the test."""
        if self._calls is not None:
            getattr(builtins, PREFIX + "caught")(error)

    @contextlib.contextmanager
    def recording(self, item: Any) -> Iterator[None]:
        """Records what happens meanwhile, and what is left over then."""
        calls = Calls(self._path, self._folder)
        before = leftovers()
        self._connect(calls)
        if len(sys._current_frames()) > 1:
            self._separate(calls)
        try:
            yield
        finally:
            self._connect(None)
            file, line, _ = item.location
            now = self._clock()
            for what, number in difference(before, leftovers()).items():
                calls.leftover((str(file), (line or 0) + 1), what, number, now)
            calls.close()


def follow(text: str) -> None:
    """In a Python process that a traced one has started: writes its part of the trace."""
    birth = settle_birth(text)
    Tracer(birth.path, birth.folder).follow(birth)


def connect(functions: Dict[str, Callable[..., Any]]) -> None:
    for name, function in functions.items():
        setattr(builtins, PREFIX + name, function)


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
                self._take_over(spec)
            return spec
        return None

    def _take_over(self, spec: Any) -> None:
        file, found = self._tracer.inside(spec.origin), spec.loader
        library = library_path(spec.origin) if file is None else None
        if file is not None:
            spec.loader = Loader(found.name, found.path, file, self._tracer)
        elif library is not None:
            spec.loader = LibraryLoader(found.name, found.path, library, self._tracer)


class Loader(SourceFileLoader):
    """Loads a module of the project, rewritten."""

    def __init__(self, name: str, path: str, file: str, tracer: Tracer) -> None:
        super().__init__(name, path)
        self._file, self._tracer = file, tracer

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self._tracer.load(path, self._file, lambda: self.source_to_code(self.get_data(path), path))

    def source_to_code(self, data: Any, path: Any, **_options: Any) -> Any:  # type: ignore[override]
        return self._tracer.compile(data, path, self._file)


class LibraryLoader(SourceFileLoader):
    """Loads a module of an installed package, rewritten where it asks clocks and the like."""

    def __init__(self, name: str, path: str, file: str, tracer: Tracer) -> None:
        super().__init__(name, path)
        self._file, self._tracer = file, tracer

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if not CALLED.search(source):
            return super().get_code(fullname)
        return self._tracer.load_library(
            path, self._file, lambda: instrument_library(source, path, self._file)
        )

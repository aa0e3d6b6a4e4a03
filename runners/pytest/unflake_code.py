"""Watches which code runs, and who takes code without running it."""

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict

from unflake_files import is_framework

if TYPE_CHECKING:
    from unflake_usage import Usage

# They look at a function's header, its place in the file, or less.
HEADER_READERS = ("asyncio/format_helpers.py", "doctest.py", "inspect.py", "types.py", "typing.py", "mock.py")
# Whoever asks for one of these depends on where in its file some code stands.
LINES = frozenset(("f_lineno", "tb_lineno", "co_firstlineno", "co_lines", "co_positions", "lineno"))
# Whoever calls one of these has files opened that nobody sees.
CERTIFICATES = frozenset(
    ("create_default_context", "load_cert_chain", "load_verify_locations", "load_dh_params")
)


class Code:
    """Tells what code runs, by the interpreter's own tracing."""

    def __init__(self, usage: "Usage") -> None:
        self._usage = usage
        # By their addresses; kept alive, so that nothing else gets these.
        self._seen: Dict[int, Any] = {}
        self._is_set = False
        # The variables of modules of which no function is worth telling.
        self._dull: Dict[int, Any] = {}

    def actions(self) -> Dict[str, Callable[..., None]]:
        """The handlers of audit events, by event."""
        if sys.version_info >= (3, 12):
            return {"object.__getattr__": self._inspected}
        return {
            "object.__getattr__": self._inspected,
            "sys.settrace": self._tracer_set,
            "exec": self._executed,
            "code.__new__": self._made,
            "function.__new__": self._made,
        }

    def start(self) -> None:
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            tool = next(number for number in (4, 3, 2, 1, 0, 5) if monitoring.get_tool(number) is None)
            monitoring.use_tool_id(tool, "unflake")
            monitoring.register_callback(tool, monitoring.events.PY_START, self._monitored)
            monitoring.set_events(tool, monitoring.events.PY_START)
        else:
            self._tracer = self._make_tracer()
            self._thread = threading.get_ident()
            threading.settrace(self._tracer)
            self._wrap_threads()

    def _monitored(self, code: Any, _offset: int) -> Any:
        self._ran(code, sys._getframe(1).f_globals)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _executed(self, code: Any) -> None:
        """A tracer slows down all that runs, so it waits for the first code of the project.

        Until then only modules run, and each is executed by somebody.
        """
        file = getattr(code, "co_filename", "")
        if self._is_set or self._usage.is_skipped(file):
            return
        if self._usage.is_everything(file):
            self._set_tracer()
        elif code.co_name == "<module>":
            loader = sys._getframe(2).f_locals.get("args", ())
            self._ran(code, loader[1] if len(loader) == 2 and isinstance(loader[1], dict) else {})

    def _made(self, *_args: Any) -> None:
        """Code that nobody executes may come from anywhere."""
        if not self._is_set and not self._usage.is_skipped(sys._getframe(2).f_code.co_filename):
            self._set_tracer()

    def _set_tracer(self) -> None:
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not self._usage.is_everything(file):
                self._dull[object.__hash__(module.__dict__)] = module.__dict__
        if threading.get_ident() != self._thread:
            self._usage.note("blind", "another thread was the first to load code of the project")
        sys.settrace(self._tracer)
        # From now on whoever sets another tracer takes this one away.
        self._is_set = True

    def _make_tracer(self) -> Any:
        """A closure: it runs at every call of all that runs."""
        seen, dull, ran, usage = self._seen, self._dull, self._ran, self._usage
        address = object.__hash__  # What `id` is, but for its audit event.

        def trace(frame: Any, _event: str, _arg: Any) -> None:
            variables = frame.f_globals
            if address(variables) in dull:
                return
            code = frame.f_code  # This has an audit event, and is slow.
            key = address(code)
            if key not in seen:
                seen[key] = code
                ran(code, variables)
                if code.co_name == "<module>" and not usage.is_everything(code.co_filename):
                    dull[address(variables)] = variables

        return trace

    def _wrap_threads(self) -> None:
        import _thread

        bare = _thread.start_new_thread

        @functools.wraps(bare)
        def start_new_thread(*args: Any, **kwargs: Any) -> Any:
            self._usage.note("blind", "a thread was started without the module threading")
            return bare(*args, **kwargs)

        _thread.start_new_thread = start_new_thread

    def _tracer_set(self) -> None:
        if not self._is_set:
            return
        setter = sys._getframe(2).f_code.co_filename
        name = os.path.basename(setter) if self._usage.is_skipped(setter) else ""
        # These two set what was set before.
        inherited = getattr(threading, "_trace_hook", None)
        if name != "doctest.py" and not (name == "threading.py" and inherited is self._tracer):
            self._usage.note("blind", "another tracer was set")

    def _ran(self, code: Any, variables: Dict[str, Any]) -> None:
        try:
            self._tell(code, variables)
        except Exception as error:  # Nothing of ours may reach the project.
            self._usage.miss("code", error)

    def _tell(self, code: Any, variables: Dict[str, Any]) -> None:
        usage = self._usage
        if usage.is_skipped(code.co_filename):
            return
        is_everything = usage.is_everything(code.co_filename)
        if code.co_name == "<module>":
            name = variables.get("__name__")
            usage.note("module", usage.absolute(code.co_filename), name if isinstance(name, str) else "")
        elif is_everything:
            usage.note("code", usage.absolute(code.co_filename), code.co_firstlineno)
        if is_everything:
            self._tell_names(code)

    def _tell_names(self, code: Any) -> None:
        """The things that code may do without an event, judged by the names in it."""
        usage, names = self._usage, code.co_names
        if not LINES.isdisjoint(names) or asks_for_lines(code.co_consts):
            usage.note("lines", usage.absolute(code.co_filename))
        if not CERTIFICATES.isdisjoint(names):
            usage.note("loaded", "ssl")
        if "posix" in names:
            usage.note("missed", f"{code.co_filename} uses the module posix")

    def _inspected(self, owner: Any, _attribute: str) -> None:
        """A function's code is used by whoever takes it, as compilers of Python do, without a call."""
        frame = sys._getframe(2)
        taker = frame.f_code
        if is_framework(taker.co_filename):
            return
        is_header = taker.co_filename.endswith(HEADER_READERS) and taker.co_name != "getclosurevars"
        if self._usage.is_skipped(taker.co_filename) and is_header:
            return
        user = self._usage.user(frame)
        if user is not None and not is_framework(user):
            self._take(owner.__code__)

    def _take(self, code: Any) -> None:
        if not hasattr(code, "co_consts"):
            return
        self._ran(code, {})
        for inner in code.co_consts:
            self._take(inner)


def asks_for_lines(constants: Any) -> bool:
    """Whether one of them is a format of log lines, or the name of such an attribute."""
    return any(isinstance(text, str) and "lineno" in text for text in constants)

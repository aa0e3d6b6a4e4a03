"""Tells of clocks, random values and the like that installed packages ask on the project's behalf.

Nothing is put in the place of such functions: tests look at them, compare and replace them. Packages are
rewritten as the project's own code is, but only where they call something that has the name of such a
function, and only calls that turn out to be of that kind are told. The standard library is left alone: what
it has of that kind is known by name.
"""

import ast
import os
import re
import warnings
from typing import Any, Optional

from unflake_trace_sites import PENDING, Rewriter, is_suspending, last_name, mark_suspending

# The last parts of the names of such functions.
NAMES = frozenset(
    (
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "localtime"),
        *("now", "utcnow", "today", "random", "randint", "randrange", "uniform", "choice", "choices"),
        *("sample", "getrandbits", "gauss", "normalvariate", "randbytes", "rand", "randn", "integers"),
        *("token_hex", "token_bytes", "token_urlsafe", "randbelow", "urandom", "uuid1", "uuid4"),
        *("listdir", "scandir", "glob", "iglob", "recv", "recv_into", "recvfrom", "getaddrinfo"),
    )
)
CALLED = re.compile(rb"\b(?:" + b"|".join(name.encode() for name in sorted(NAMES)) + rb")\s*\(")
FOLDERS = ("site-packages", "dist-packages")
# They run the tests, and are not what is tested.
OURS = frozenset(("pytest", "_pytest", "py", "pluggy", "iniconfig", "coverage", "xdist", "execnet"))


def library_path(file: str) -> Optional[str]:
    """A file's path from the folder that has the installed packages; `None` if it is not one of theirs."""
    parts = os.path.abspath(file).split(os.sep)
    at = max((at for at, part in enumerate(parts) if part in FOLDERS), default=None)
    if at is None or at + 1 == len(parts) or parts[at + 1].split(".")[0] in OURS:
        return None
    return "/".join(parts[at:])


def instrument_library(source: bytes, path: str, file: str) -> Any:
    """The code of a package's file, which tells of what is asked there."""
    with warnings.catch_warnings():
        # In a plain run it was compiled long ago.
        warnings.simplefilter("ignore")
        tree = ast.parse(source, filename=path)
        suspending: Any = set()
        if any(is_suspending(node) for node in ast.walk(tree)):
            mark_suspending(tree, suspending)
        PENDING[file] = []
        LibraryRewriter(file, suspending, PENDING[file]).visit(tree)
        return compile(tree, path, "exec", dont_inherit=True)


class LibraryRewriter(Rewriter):
    """Rewrites only calls of what has one of the names."""

    is_library = True

    def visit_Call(self, node: ast.Call) -> Any:
        return super().visit_Call(node) if last_name(node.func) in NAMES else self.generic_visit(node)

    def visit_Await(self, node: ast.Await) -> Any:
        return self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        return self.generic_visit(node)

    def _order_site(self, node: ast.expr) -> Optional[ast.Constant]:
        return None

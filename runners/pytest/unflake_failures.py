"""Failures as facts: the kind of a failure and the frames of the project on its way."""

import linecache
import os
import sysconfig
from typing import Any, Dict, List, Optional, Tuple

from unflake_channel import clean

FRAMES, LETTERS = 50, 500
Facts = Tuple[str, List[List[str]]]
NOTHING: Facts = ("", [])


class Failures:
    """The failures of one test's run, by the reports that tell of them."""

    def __init__(self, root: str, imported_from: List[str]) -> None:
        self._root = root
        # The innermost folder first, so that a file is named from there.
        self._roots = sorted({root, *imported_from}, key=len, reverse=True)
        own = os.path.dirname(os.path.abspath(__file__))
        standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
        self._others = tuple(folder + os.sep for folder in (own, *standard))
        self._names: Dict[str, Optional[str]] = {}
        self._getline = linecache.getline  # Taken now: a test may replace it.
        self._noted: List[Tuple[Any, Facts]] = []

    def forget(self) -> None:
        self._noted = []

    def note(self, report: Any, excinfo: Any) -> None:
        """Keeps what is to be said of a report, which is not ours to change."""
        try:
            facts = (kind_of(excinfo.type), self._frames(excinfo.tb))
        except Exception:  # An exception of the project may do anything.
            facts = NOTHING
        self._noted.append((report, facts))

    def of(self, report: Any) -> Facts:
        """The failure that a report tells of; that of a subtest is a copy of the one that was noted."""
        for noted, facts in self._noted:
            if noted is report:
                return facts
        crash = crash_of(report)
        for noted, facts in self._noted:
            if crash is not None and crash_of(noted) == crash:
                return facts
        return NOTHING

    def _frames(self, traceback: Any) -> List[List[str]]:
        """File, function and source line of the project's frames, the outermost first.

        The innermost of very many are left out: those of an endless recursion end anywhere.
        """
        frames: List[List[str]] = []
        while traceback is not None and len(frames) < FRAMES:
            code = traceback.tb_frame.f_code
            name = self._name(code.co_filename)
            if name is not None:
                line = self._getline(code.co_filename, traceback.tb_lineno, traceback.tb_frame.f_globals)
                frames.append([name, clean(code.co_name), clean(line.strip()[:LETTERS])])
            traceback = traceback.tb_next
        return frames

    def _name(self, path: str) -> Optional[str]:
        """A file of the project, from the root or else from where it is imported; `None` for others."""
        if path not in self._names:
            self._names[path] = self._look_up(path)
        return self._names[path]

    def _look_up(self, path: str) -> Optional[str]:
        if path.startswith("<"):
            return None
        whole = os.path.abspath(path)
        if whole.startswith(self._others) or "-packages" + os.sep in whole:
            return None
        for folder in (self._root, *self._roots):
            inside = folder if folder.endswith(os.sep) else folder + os.sep
            if whole.startswith(inside):
                return clean(whole[len(inside) :])
        return None


def kind_of(kind: type) -> str:
    """The name of an exception's class, with its module if that is not Python's own."""
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return clean(f"{module}{kind.__qualname__}"[:LETTERS])


def crash_of(report: Any) -> Optional[Tuple[str, int, str]]:
    crash = getattr(report.longrepr, "reprcrash", None)
    return None if crash is None else (str(crash.path), crash.lineno, crash.message)

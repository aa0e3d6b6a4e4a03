"""A tiny project for each test, and a snapshot of it."""

import importlib
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Iterator, List, Optional

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tracing import Traced

from unflake_channel import Message
from unflake_state import State
from unflake_trace import Finder


class Project:
    """A project with a module `shop`, and what is different in it."""

    def __init__(self, config: Any, folder: Any) -> None:
        self.config, self.folder = config, folder
        self.loaded: List[str] = []
        self.state = State(config, [str(folder)], files=False)

    def load(self, source: str, name: str = "shop") -> Any:
        (self.folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        self.loaded.append(name)
        return importlib.import_module(name)

    def changes(self, change: Callable[[], Any]) -> List[Message]:
        """What `change` changed."""
        self.state.mark()
        change()
        return self.compare()

    def compare(self) -> List[Message]:
        pieces: List[Message] = self.state.compare()["pieces"]
        return pieces

    def check(
        self, change: Callable[[], Any], kind: str, path: str, before: Optional[str], after: Optional[str]
    ) -> Message:
        """Exactly this piece is seen, and can be put back."""
        pieces = self.changes(change)
        seen = [(piece["kind"], piece["path"], piece["before"], piece["after"]) for piece in pieces]
        assert seen == [(kind, path, before, after)]
        assert pieces[0]["restorable"]
        assert self.state.restore([pieces[0]["key"]]) == []
        assert self.compare() == []
        return pieces[0]


@pytest.fixture
def project(request: Any, tmp_path: Any) -> Iterator[Project]:
    known, path = dict(sys.modules), list(sys.path)
    sys.path.insert(0, str(tmp_path))
    found = Project(request.config, tmp_path)
    yield found
    sys.path[:] = path
    for name in found.loaded:
        if name not in known:
            sys.modules.pop(name, None)


@pytest.fixture
def shop(project: Project) -> ModuleType:
    """An empty module of the project."""
    module: ModuleType = project.load("")
    return module


@pytest.fixture
def traced(tmp_path: Any, monkeypatch: Any) -> Iterator[Traced]:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    found = Traced(tmp_path)
    found.tracer._follow_threads()
    finder = Finder(found.tracer)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(tmp_path))
    yield found
    sys.path.remove(str(tmp_path))
    sys.meta_path.remove(finder)
    sys.modules.pop("shop", None)

"""A project whose modules are rewritten, for tests of tracing."""

import importlib
import sys
import textwrap
from typing import Any, Dict, List, Optional, Tuple

from trace_reading import Called, Process, read

from unflake_trace import Tracer
from unflake_trace_kinds import LEFTOVER


class Item:
    location = ("test_shop.py", 0, "test")


class Traced:
    """A project whose modules are rewritten, and what was recorded of a run."""

    def __init__(self, folder: Any) -> None:
        self.folder, self.path = folder, str(folder / "0.trace")
        self.tracer = Tracer(self.path, str(folder))
        self.tracer._connect(None)
        self.processes: List[Process] = []

    def load(self, source: str) -> Any:
        (self.folder / "shop.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        sys.modules.pop("shop", None)
        return importlib.import_module("shop")

    def run(self, source: str, name: str = "main") -> Any:
        """What `main()` of a module returns; its calls are recorded."""
        module = self.load(source)
        with self.tracer.recording(Item()):
            result = getattr(module, name)()
        self.processes = read(self.path)
        return result

    def told(self, caller: Optional[str] = None) -> List[Called]:
        """The calls in the order of their beginnings."""
        every = [call for process in self.processes for call in process.calls if call.kind != LEFTOVER]
        return sorted(call for call in every if caller in (None, call.caller))

    def calls(self, caller: Optional[str] = None) -> List[Tuple[str, Optional[str]]]:
        """Callee and value of each call in the order of their beginnings."""
        texts = [(one, f"raised {one.value}" if one.is_raised else one.value) for one in self.told(caller)]
        return [(one.callee, text) for one, text in texts]

    def leftovers(self) -> Dict[str, Optional[str]]:
        calls = self.processes[0].calls
        return {one.callee: one.value for one in calls if one.kind == LEFTOVER}

    def threads(self) -> List[Tuple[str, Optional[str]]]:
        return [one[:2] for process in self.processes for one in process.threads.values()]

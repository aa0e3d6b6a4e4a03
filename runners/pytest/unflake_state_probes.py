"""A probe looks at one part of the process that is not an object of the project's.

What it finds is a table from paths, which people read, to tokens, which can be compared. The table has
the same paths in every VM that ran the same tests, as far as the part allows it.
"""

from io import FileIO
from typing import Any, Dict, List, Optional, Tuple

from unflake_state_values import ABSENT, cut, show

Changes = Dict[str, Tuple[Any, Any]]


class Probe:
    """One part of the process. A probe that cannot look at all says why in `unseen`."""

    kind = ""

    def __init__(self) -> None:
        self.unseen: List[str] = []

    def mark(self) -> Dict[str, Any]:
        """The present entries, for a comparison with later ones."""
        return self.take()

    def take(self) -> Dict[str, Any]:
        """The present entries."""
        raise NotImplementedError

    def look(self, path: str) -> Any:
        """One entry as it is now; quicker than all of them, if that matters."""
        return self.take().get(path, ABSENT)

    def is_same(self, before: Any, after: Any) -> bool:
        return bool(before == after)

    def show(self, token: Any) -> Optional[str]:
        return show(token)

    def show_both(self, before: Any, after: Any) -> Tuple[Optional[str], Optional[str]]:
        """An entry before and now, if both exist; a probe may leave out their common part."""
        return self.show(before), self.show(after)

    def group(self, changes: Changes) -> Changes:
        """The changes worth telling: one may go without saying because of another."""
        return changes

    def write(self, path: str) -> str:
        """The part of the key that replaces the path, if the path differs from VM to VM."""
        return path

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return True

    def put(self, path: str, before: Any, after: Any) -> None:
        """Puts an entry back. Raises what it likes if it cannot."""
        raise NotImplementedError


class Setting(Probe):
    """A probe with one entry."""

    def __init__(self, kind: str, path: str, take: Any, put: Any = None, show: Any = None) -> None:
        super().__init__()
        self.kind, self._path, self._take, self._put, self._show = kind, path, take, put, show

    def take(self) -> Dict[str, Any]:
        return {self._path: self._take()}

    def look(self, path: str) -> Any:
        return self._take()

    def is_same(self, before: Any, after: Any) -> bool:
        return before is after or (type(before) is type(after) and bool(before == after))

    def show(self, token: Any) -> Optional[str]:
        return show(token) if self._show is None else cut(self._show(token))

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return self._put is not None

    def put(self, path: str, before: Any, after: Any) -> None:
        self._put(before)


def read_bytes(path: str) -> bytes:
    """The content of a file. A test may have put a mock in the place of `open`."""
    with FileIO(path) as file:
        return file.readall()

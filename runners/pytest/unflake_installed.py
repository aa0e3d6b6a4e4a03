"""The packages beside the project: a test may fail because of one, with no change to the project."""

import json
import os
import sys
from typing import Any, List, Optional, Set

from unflake_channel import clean


def installed(root: str) -> Optional[List[str]]:
    """The packages on the search path, each with its version.

    None if one of them is used from a folder outside the project: what it holds has no version.
    """
    found: Set[str] = set()
    for folder in sys.path:
        for name in _list(folder or os.curdir):
            path = os.path.join(folder, name)
            if name.endswith(".egg-link"):
                return None
            if name.endswith(".dist-info"):
                origin = _read_origin(path)
                if _is_editable(origin) and not _is_inside(origin, root):
                    return None
                found.add(f"{name} {_stamp(path, origin)}".strip())
            elif name.endswith((".egg-info", ".egg")):
                found.add(name)
    return sorted(clean(name) for name in found)


def _list(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read_origin(path: str) -> Any:
    """The source from which the package was installed, if that is no registry (PEP 610)."""
    try:
        with open(os.path.join(path, "direct_url.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _is_editable(origin: Any) -> bool:
    folder = origin.get("dir_info") if isinstance(origin, dict) else None
    return isinstance(folder, dict) and bool(folder.get("editable"))


def _is_inside(origin: Any, root: str) -> bool:
    # Not at the top: a test may look whether something has imported it.
    from urllib.parse import unquote, urlsplit

    folder, root = os.path.realpath(unquote(urlsplit(str(origin.get("url"))).path)), os.path.realpath(root)
    return os.path.commonpath([folder, root]) == root


def _stamp(path: str, origin: Any) -> str:
    """A text that tells apart two packages of the same version from a folder or a repository."""
    if origin is None or _is_editable(origin):
        return ""
    try:
        return str(os.stat(path).st_mtime_ns)
    except OSError:
        return "gone"

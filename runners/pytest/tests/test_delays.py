"""Delays are made where they are wanted and nowhere else, and code does otherwise what it would without."""

import ast
import builtins
import json
import threading
from typing import Any, Dict, Iterator, List

import pytest

import unflake_delays
from unflake_delays import AFTER, AWAIT, BEFORE, ENTER, Delays, Hook, Rewriter

SOURCE = """
import threading

def work(results, lock):
    with lock:
        results.append(1)

def main():
    results, lock = [], threading.Lock()
    thread = threading.Thread(target=work, args=(results, lock))
    thread.start()
    thread.join()
    return sorted(results), [*map(str, range(2))], f"{len(results)!r}", super.__name__
"""


class Recording:
    """A tracer that records nothing."""

    def __init__(self) -> None:
        self.inside = {"shop.py": "shop.py"}.get

    def recording(self, _item: Any) -> Any:
        return threading.Lock()  # Something that can be entered.


@pytest.fixture
def slept(monkeypatch: Any) -> Iterator[List[float]]:
    slept: List[float] = []
    monkeypatch.setattr(unflake_delays, "sleep", slept.append)
    kept = threading.Thread.start, threading.Thread.run
    yield slept
    patched: Any = threading.Thread
    patched.start, patched.run = kept
    for name in (BEFORE, AFTER, ENTER, AWAIT):
        if hasattr(builtins, name):
            delattr(builtins, name)


def play(tmp_path: Any, points: List[Dict[str, Any]], milliseconds: int = 50) -> Any:
    """What `main()` returns, and the places for delays."""
    path = tmp_path / "0.points"
    delays = Delays(Recording(), str(path), {"milliseconds": milliseconds, "points": points})
    hooks = {BEFORE: delays.before, AFTER: delays.after, ENTER: delays.enter, AWAIT: delays.waits}
    for name, function in hooks.items():
        setattr(builtins, name, Hook(function))
    delays._follow_threads()
    tree = ast.parse(SOURCE)
    Rewriter("shop.py").visit(tree)
    names: Dict[str, Any] = {}
    exec(compile(tree, "shop.py", "exec"), names)
    with delays.recording(None):
        result = names["main"]()
    return result, json.loads(path.read_text())


def test_without_delays_places_are_told_and_nothing_else_happens(tmp_path: Any, slept: List[float]) -> None:
    result, points = play(tmp_path, [])
    assert result == ([1], ["0", "1"], "1", "super")
    assert not slept
    found = {(point["thread"], point["line"], point["moment"]) for point in points}
    worker = "main/shop.py:11#1"
    assert {("main", 11, "before"), ("main", 11, "after"), ("main", 12, "before")} <= found
    assert {(worker, 4, "entry"), (worker, 5, "before"), (worker, 6, "before")} <= found
    plain = {point["line"] for point in points if point["is_plain"]}
    assert 6 in plain and 5 not in plain


def test_only_wanted_places_are_late(tmp_path: Any, slept: List[float]) -> None:
    _, points = play(tmp_path, [])
    wanted = [point for point in points if point["line"] == 5]
    assert len(wanted) == 1
    result, _ = play(tmp_path, wanted)
    assert result[0] == [1]
    assert slept == [0.05]


def test_a_thread_is_late_for_some_seconds_in_all(tmp_path: Any, slept: List[float]) -> None:
    _, points = play(tmp_path, [])
    wanted = [point for point in points if point["thread"] == "main"]
    assert len(wanted) > 2
    play(tmp_path, wanted, milliseconds=3000)
    assert slept == [3.0, 3.0]

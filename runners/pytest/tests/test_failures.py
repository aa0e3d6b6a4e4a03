"""What is said of an exception: its kind, and the frames of the project."""

import json
import sys
from types import SimpleNamespace
from typing import Any, List

import pytest

from unflake_failures import Facts, Failures
from unflake_reports import judge

SOURCE = """
import json


class Empty(Exception):
    pass


def first(items):
    if not items:
        raise Empty("nothing")
    return json.loads(items[0])


def deep(count):
    return deep(count + 1)


def chained():
    try:
        first([])
    except Empty as error:
        raise ValueError("no") from error
"""


def noted(project: Any, *roots: str, call: Any) -> Facts:
    failures = Failures(str(project.folder), list(roots))
    report = SimpleNamespace(longrepr=None)
    with pytest.raises(Exception) as caught:
        call()
    failures.note(report, caught)
    return failures.of(report)


def functions(frames: List[List[str]]) -> List[str]:
    return [function for _, function, _ in frames]


def test_an_exception_is_named_with_its_module(project: Any) -> None:
    shop = project.load(SOURCE)
    kind, frames = noted(project, call=lambda: shop.first([]))
    assert kind == "shop.Empty"
    assert frames == [["shop.py", "first", 'raise Empty("nothing")']]


def test_frames_of_the_language_are_left_out(project: Any) -> None:
    shop = project.load(SOURCE)
    kind, frames = noted(project, call=lambda: shop.first(["{"]))
    assert kind == "json.decoder.JSONDecodeError"
    assert functions(frames) == ["first"]
    assert json.__file__


def test_of_chained_exceptions_the_last_counts(project: Any) -> None:
    shop = project.load(SOURCE)
    kind, frames = noted(project, call=shop.chained)
    assert kind == "ValueError"
    assert frames == [["shop.py", "chained", 'raise ValueError("no") from error']]


def test_an_endless_recursion_has_fifty_frames(project: Any) -> None:
    shop = project.load(SOURCE)
    kind, frames = noted(project, call=lambda: shop.deep(0))
    assert kind == "RecursionError"
    assert functions(frames) == ["deep"] * 50


def test_a_file_outside_the_root_is_named_from_where_it_is_imported(project: Any, tmp_path: Any) -> None:
    shop = project.load(SOURCE)
    failures = Failures(str(tmp_path / "elsewhere"), [str(project.folder)])
    report = SimpleNamespace(longrepr=None)
    with pytest.raises(shop.Empty) as caught:
        shop.first([])
    failures.note(report, caught)
    assert failures.of(report)[1][0][0] == "shop.py"


def test_the_report_of_a_subtest_is_known_by_its_crash(project: Any) -> None:
    failures = Failures(str(project.folder), [])
    crash = SimpleNamespace(path="a.py", lineno=3, message="no")
    try:
        raise KeyError("no")
    except KeyError:
        kind, _, traceback = sys.exc_info()
    failures.note(
        SimpleNamespace(longrepr=SimpleNamespace(reprcrash=crash)), SimpleNamespace(type=kind, tb=traceback)
    )
    again = SimpleNamespace(longrepr=SimpleNamespace(reprcrash=SimpleNamespace(**vars(crash))))
    assert failures.of(again)[0] == "KeyError"
    assert failures.of(SimpleNamespace(longrepr=None)) == ("", [])


def test_subtests_that_failed_are_parts_of_their_test(project: Any) -> None:
    def report(context: Any = None) -> Any:
        more = {} if context is None else {"context": context}
        return SimpleNamespace(
            outcome="failed", when="call", longrepr=None, longreprtext="", sections=[], duration=0.0, **more
        )

    def subtest(msg: Any, **kwargs: Any) -> Any:
        return report(SimpleNamespace(msg=msg, kwargs=kwargs))

    reports = [subtest("tea", b=2, a=object), subtest(None), subtest(None), report()]
    told = judge(reports, Failures(str(project.folder), []))
    assert told["parts"] == [["1", "tea (a=<class 'object'>, b=2)"], ["1", " ()"], ["2", " ()"]]
    assert judge([report()], Failures(str(project.folder), []))["parts"] == []

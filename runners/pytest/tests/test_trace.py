"""What is recorded of calls, and that code behaves as it would without."""

import ast
import builtins
import importlib
import os
import sys
import textwrap
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest
from _pytest.assertion import rewrite
from trace_reading import Called, Process, read

from unflake_trace import Finder, Tracer
from unflake_trace_cache import settle
from unflake_trace_kinds import IO, LEFTOVER, PLAIN, RANDOMNESS, TIME, WAIT, kind_of
from unflake_trace_sites import PENDING, PREFIX, instrument
from unflake_trace_strand import MOST_PLAIN


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


def test_calls_are_told_with_what_they_return(traced: Traced) -> None:
    result = traced.run(
        """
        import random

        class Till:
            def add(self, price):
                return price + 1

        def main():
            random.seed(1)
            return [Till().add(int("4")), len({1, 2})]
        """
    )
    assert result == [5, 2]
    assert traced.calls() == [
        ("random.Random.seed", "None"),
        ("shop.Till", "<Till>"),
        ("int", "4"),
        ("shop.Till.add", "5"),
        ("len", "2"),
    ]
    assert traced.processes[0].ended
    calls = {one.callee: one for one in traced.told()}
    assert calls["int"][1:5] == ("shop.py", 10, 24, "main")
    assert calls["random.Random.seed"].kind == PLAIN


def test_an_exception_ends_the_calls_that_it_goes_through(traced: Traced) -> None:
    traced.run(
        """
        def inner():
            return int("x")

        def outer(_):
            return inner()

        def main():
            for text in ("1", "y"):
                try:
                    outer(int(text))
                except ValueError:
                    pass
            return str(3)
        """
    )
    assert traced.calls("main") == [
        ("int", "1"),
        ("shop.outer", "raised ValueError: invalid literal for int() with base 10: 'x'"),
        ("int", "raised ValueError: invalid literal for int() with base 10: 'y'"),
        ("str", "'3'"),
    ]


def test_an_exception_that_is_being_handled_is_named(traced: Traced) -> None:
    traced.run(
        """
        def main():
            try:
                int("x")
            except ValueError as error:
                return str(error)
        """
    )
    assert traced.calls()[0][1] == "raised ValueError: invalid literal for int() with base 10: 'x'"


def test_a_thread_is_named_by_where_it_was_started(traced: Traced) -> None:
    traced.run(
        """
        import threading

        def work():
            abs(1)

        def main():
            for _ in range(2):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
        """
    )
    expected = [("main", None), ("main/shop.py:10#1", "main"), ("main/shop.py:10#2", "main")]
    assert traced.threads() == expected


def test_tasks_are_threads_of_their_own_and_awaiting_takes_time(traced: Traced) -> None:
    traced.run(
        """
        import asyncio

        async def work(number):
            await asyncio.sleep(0)
            return number

        async def both():
            return await asyncio.gather(work(1), work(2))

        def main():
            return asyncio.run(both())
        """
    )
    names = [name for name, _ in traced.threads()]
    assert names == ["main", "main/both#1", "main/work#1", "main/work#2"]
    assert ("await sleep", "None") in traced.calls("work")


def test_what_a_test_leaves_open_is_counted(traced: Traced) -> None:
    traced.run(
        """
        def main():
            globals()["kept"] = open(__file__)
        """
    )
    traced.load("")  # The file is closed by whoever drops the module.
    assert traced.leftovers()["file descriptors left over"] == "1"
    assert traced.leftovers()["threads left over"] == "0"


def test_values_have_no_addresses_and_no_places_of_one_run(traced: Traced) -> None:
    traced.run(
        """
        import os

        def main():
            os.path.abspath(__file__)
            return repr(object())
        """
    )
    values = [value for _, value in traced.calls("main")]
    assert values == ["'<project>/shop.py'", "<object>", "'<object object at 0x…>'"]


def test_code_behaves_as_it_would_without(traced: Traced) -> None:
    source = """
        from __future__ import annotations
        import contextlib, functools, inspect, sys, warnings

        class Base:
            def __init__(self, *args, **options):
                self.args, self.options = args, options

            def __hidden(self):
                return str("hidden")

            def show(self):
                return self.__hidden()

        class Shop(Base):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                self.size: int = max(len(args), 0)

        def annotated(x: dict(a=1)) -> list(range(3)):
            local = int("3")
            return sorted(locals())

        def numbers():
            got = yield str(1)
            yield str(got)
            yield list(map(lambda n: abs(n), (yield)))

        @contextlib.contextmanager
        def manager():
            yield str("inside")

        @functools.lru_cache(maxsize=int("3"))
        def cached(n):
            return [len(str(i)) for i in range(n) if (m := str(i))]

        def deep(n):
            return 0 if n == 0 else 1 + deep(n - 1)

        async def stream():
            for n in range(2):
                yield str(n)

        async def gather():
            return [n async for n in stream()] + [str(await one()) for _ in range(1)]

        async def one():
            return int("1")

        def main():
            import asyncio
            found = [annotated(1), annotated.__annotations__, cached(3), deep(50)]
            shop = Shop(*[1, 2], **{"a": str(3)})
            found += [shop.args, shop.options, shop.size, shop.show(), Base.show(shop)]
            generator = numbers()
            found += [next(generator), generator.send(5), next(generator), generator.send([-1])]
            with manager() as inside:
                found.append(f"{inside!r:>10} {len(inside)}")
            found.append(asyncio.run(gather()))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.warn("here", stacklevel=1)
                found.append(caught[0].lineno)
            found += [sys._getframe().f_code.co_name, inspect.stack()[0].function]
            found.append(inspect.getsource(deep))
            try:
                int(str("x"))
            except ValueError as error:
                found.append(error.__traceback__.tb_lineno)
            print("a", *["b"], sep="-", end="")
            return found
        """
    plain: Dict[str, Any] = {}
    module = traced.load(source)
    text = (traced.folder / "shop.py").read_text()
    code = compile(ast.parse(text), str(traced.folder / "shop.py"), "exec", dont_inherit=True)
    plain["__name__"] = "shop"
    exec(code, plain)
    expected = plain["main"]()
    with traced.tracer.recording(Item()):
        assert module.main() == expected


def test_calls_in_an_assertion_are_told_and_those_of_pytest_are_not(traced: Traced, tmp_path: Any) -> None:
    source = b"def main():\n    assert 'a'.upper() == str('A') and len('b') == 1\n"
    tree = ast.parse(source)
    rewrite.rewrite_asserts(tree, source, str(tmp_path / "test_x.py"))
    instrument(tree, "test_x.py")
    module: Dict[str, Any] = {"__name__": "test_x"}
    code = compile(tree, str(tmp_path / "test_x.py"), "exec")
    exec(settle(code, PENDING.pop("test_x.py")), module)
    with traced.tracer.recording(Item()):
        module["main"]()
    traced.processes = read(traced.path)
    assert traced.calls() == [("str.upper", "'A'"), ("str", "'A'"), ("len", "1")]


def test_only_code_of_the_project_is_rewritten(traced: Traced) -> None:
    inside = traced.tracer.inside
    assert inside(str(traced.folder / "a" / "b.py")) == "a/b.py"
    assert inside(str(traced.folder / "venv/lib/site-packages/b.py")) is None
    assert inside(ast.__file__) is None


def test_names_of_ours_are_not_in_the_module(traced: Traced) -> None:
    module = traced.load("x = str(3)")
    assert [name for name in vars(module) if "unflake" in name] == []
    assert hasattr(builtins, PREFIX + "begin")


def test_an_argument_that_suspends_is_left_alone() -> None:
    tree = ast.parse("def f():\n    g((yield 1))")
    instrument(tree, "x.py")
    assert "@unflake" not in ast.unparse(tree) if sys.version_info >= (3, 9) else True


def test_kinds_are_told_by_name() -> None:
    assert kind_of("time.time") == TIME
    assert kind_of("time.sleep") == WAIT
    assert kind_of("random.Random.random") == RANDOMNESS
    assert kind_of("posix.listdir") == IO
    assert kind_of("timeout.now") == PLAIN
    assert kind_of("shop.Till") == PLAIN


def test_a_test_module_with_a_docstring_can_be_rewritten(traced: Traced) -> None:
    """pytest puts imports after the docstring, on lines that nothing else of the module has."""
    tree = ast.parse('"""Words.\n\nMore words.\n"""\n\nassert str(1)\n')
    rewrite.rewrite_asserts(tree, b'"""Words.\n\nMore words.\n"""\n\nassert str(1)\n')
    instrument(tree, "test_words.py")
    compile(tree, "test_words.py", "exec")


def test_a_place_that_is_called_too_often_is_counted(traced: Traced) -> None:
    traced.run(
        """
        def odd(number):
            return number == 1400

        def main():
            return [odd(number) for number in range(1500)].count(True)
        """
    )
    assert traced.calls("main").count(("shop.odd", "False")) == MOST_PLAIN
    assert traced.processes[0].hot == [("shop.odd", "main", 1500 - MOST_PLAIN, 2, "True")]


def test_the_call_that_an_exception_has_left_is_told_from_those_around_it(traced: Traced) -> None:
    traced.run(
        """
        def deep(number):
            try:
                return deep(number - 1) if number else int("x")
            except ValueError:
                return None

        def main():
            deep(2)
        """
    )
    assert [value for callee, value in traced.calls() if callee == "shop.deep"] == ["None"] * 3
    assert [value for callee, value in traced.calls() if callee == "int"] == [
        "raised ValueError: invalid literal for int() with base 10: 'x'"
    ]


def test_a_test_that_fails_tells_with_what(traced: Traced) -> None:
    module = traced.load(
        """
        def test():
            raise_it()

        def raise_it():
            raise KeyError("gone")
        """
    )
    with traced.tracer.recording(Item()):
        try:
            module.test()
        except KeyError as error:
            traced.tracer.note(error)
    traced.processes = read(traced.path)
    assert traced.calls("test") == [("shop.raise_it", "raised KeyError: gone")]


def test_a_forked_process_is_followed(traced: Traced, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "_exit", os._exit)
    followed = [traced.tracer._follow_fork]
    os.register_at_fork(after_in_child=lambda: followed[0]())
    traced.run(
        """
        import os

        def main():
            child = os.fork()
            if child == 0:
                abs(-3)
                os._exit(0)
            os.waitpid(child, 0)
        """
    )
    followed[0] = lambda: None
    assert [process.ended for process in traced.processes] == [1, 1]
    parent, child = ([one.callee for one in process.calls] for process in traced.processes)
    assert "abs" in child
    assert "abs" not in parent
    assert traced.threads() == [("main", None), ("main/shop.py:5#1/fork", None)]


def test_a_socket_that_is_left_open_is_counted(traced: Traced) -> None:
    module = traced.load(
        """
        import socket

        kept = []

        def main():
            kept.append(socket.socket())
        """
    )
    with traced.tracer.recording(Item()):
        module.main()
    module.kept.pop().close()
    traced.processes = read(traced.path)
    assert traced.leftovers()["sockets left over"] == "1"


def test_rewritten_code_is_kept_until_the_file_changes(traced: Traced) -> None:
    path, made = str(traced.folder / "shop.py"), []

    def make() -> Any:
        made.append(1)
        return traced.tracer.compile((traced.folder / "shop.py").read_bytes(), path, "shop.py")

    for source, times in (("x = len('a')", 1), ("x = len('a')", 1), ("x = len('abc')", 2)):
        if (made and times > len(made)) or not made:
            (traced.folder / "shop.py").write_text(source)
        space: Dict[str, Any] = {}
        exec(traced.tracer.load(path, "shop.py", make), space)
        assert len(made) == times
    assert space["x"] == 3


def test_nothing_is_looked_up_twice_that_could_notice(traced: Traced) -> None:
    source = """
        import collections

        seen = []

        class Names(dict):
            def __getitem__(self, name):
                seen.append(name)
                return super().__getitem__(name)

        class Meta(type):
            def __prepare__(name, bases):
                return Names()

            def __new__(kind, name, bases, space):
                return super().__new__(kind, name, bases, dict(space))

        class Till:
            @property
            def drawer(self):
                seen.append("drawer")
                return []

        def main():
            class Shop(metaclass=Meta):
                def size(text):
                    return len(text)
                value = size("abc")
            Till().drawer.append(1)
            till = Till()
            till.drawer.append(2)
            return [name for name in seen if not name.startswith("__")], Shop.value
        """
    assert traced.run(source) == (["size", "drawer", "drawer"], 3)


def test_what_calls_return_is_not_kept_alive(traced: Traced) -> None:
    source = """
        import weakref

        class Till:
            def itself(self):
                return self

        def make():
            class Local:
                pass
            return Local, lambda: Local

        def main():
            till = Till()
            refs = [weakref.ref(till.itself())]
            del till
            local, function = make()
            instance = local()
            refs += [weakref.ref(function), weakref.ref(instance)]
            function()
            del local, function, instance
            return [ref() for ref in refs]
        """
    assert traced.run(source) == [None, None, None]


def test_nothing_of_the_project_is_asked_about_values(traced: Traced) -> None:
    source = """
        class Meta(type):
            def __hash__(self):
                raise AssertionError("asked")

            def __eq__(self, other):
                raise AssertionError("asked")

        class Shy(metaclass=Meta):
            def __getattribute__(self, name):
                raise AssertionError("asked")

            def __repr__(self):
                raise AssertionError("asked")

            def __len__(self):
                raise AssertionError("asked")

            def __call__(self):
                return 3

        def same(value):
            return value

        def main():
            shy = Shy()
            same(shy), same([shy]), same(Shy)
            return shy()
        """
    assert traced.run(source) == 3
    assert ("shop.Shy.__call__", "3") in traced.calls()


def test_a_test_may_close_every_descriptor_and_change_the_clock(traced: Traced, monkeypatch: Any) -> None:
    for module in [module for name, module in sys.modules.items() if name.startswith("unflake_trace")]:
        for name, value in list(vars(module).items()):
            if value is time.perf_counter_ns:
                monkeypatch.setattr(module, name, lambda: -1)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: -1)
    traced.run(
        """
        import os

        def main():
            opened = os.open(os.devnull, os.O_RDONLY)
            os.closerange(opened, opened + 50)
            abs(1)
        """
    )
    assert ("abs", "1") in traced.calls()


@pytest.mark.skipif(sys.version_info < (3, 10), reason="older Pythons have no match")
def test_match_and_a_class_that_is_matched_are_left_as_they_are(traced: Traced) -> None:
    source = """
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: int
            y: int = len("ab")

        def main():
            match Point(int("1")):
                case Point(x=1, y=y) if str(y) == "2":
                    return y
        """
    assert traced.run(source) == 2

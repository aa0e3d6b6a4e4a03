"""That code behaves under tracing as it would without."""

import ast
import builtins
import sys
import time
from typing import Any, Dict

import pytest
from _pytest.assertion import rewrite
from trace_reading import read
from tracing import Item, Traced

from unflake_trace_cache import settle
from unflake_trace_sites import PENDING, PREFIX, instrument


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

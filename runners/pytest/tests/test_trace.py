"""What is recorded of calls."""

import ast
import os
import sys
from typing import Any

from _pytest.assertion import rewrite
from trace_reading import read
from tracing import Item, Traced

import unflake_trace_calls
from unflake_trace_kinds import IO, PLAIN, RANDOMNESS, TIME, UNORDERED, WAIT, kind_of
from unflake_trace_sites import instrument
from unflake_trace_strand import MOST_PLAIN


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


def test_what_a_process_did_before_it_ends_itself_is_written(traced: Traced, monkeypatch: Any) -> None:
    calls: Any = unflake_trace_calls.Calls
    written, write = [], calls.write

    def noted(self: Any, strand: Any, everything: bool = False) -> None:
        write(self, strand, everything)
        written.append((everything, len(strand.events)))

    monkeypatch.setattr(calls, "write", noted)
    traced.run(
        """
        import os
        from os import kill

        def main():
            for _ in range(2):
                len("x")
                os.kill(os.getpid(), 0)
                kill(os.getpid(), 0)
        """
    )
    # Signal 0 does nothing, so that here everybody lives on.
    assert [left for everything, left in written if everything] == [0] * 4


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


def test_kinds_are_told_by_name() -> None:
    assert kind_of("time.time") == TIME
    assert kind_of("time.sleep") == WAIT
    assert kind_of("random.Random.random") == RANDOMNESS
    assert kind_of("posix.listdir") == IO
    assert kind_of("timeout.now") == PLAIN
    assert kind_of("shop.Till") == PLAIN
    assert kind_of("faker.proxy.Faker.name") == RANDOMNESS
    assert kind_of("asyncio.locks.Event.wait") == WAIT


def test_a_function_of_the_project_is_plain_whatever_its_module_is_called(traced: Traced) -> None:
    (traced.folder / "redis.py").write_text("def get():\n    return 1\n")
    traced.run("import redis\n\ndef main():\n    return redis.get()\n")
    sys.modules.pop("redis")
    assert [(one.callee, one.kind) for one in traced.told("main")] == [("redis.get", PLAIN)]


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
    assert traced.threads() == [("main", None), ("main/shop.py:5#1/fork", "main")]


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


def test_the_order_in_which_a_set_is_gone_through_is_told(traced: Traced) -> None:
    source = """
        def main():
            names = {"ann", "bob", "cid"}
            found = [list(names), [name for name in names], ",".join(names), next(iter(frozenset(names)))]
            for name in names:
                found.append(name)
            found += [sum(len(name) for name in names), *map(len, names), *zip(names, [1])]
            for one in [1], {"alone"}, {"a": 1}:
                list(one)
            return names
        """
    names = list(traced.run(source))
    orders = [(one.line, one.callee, one.value) for one in traced.told() if one.kind == UNORDERED]
    lines = [4, 4, 4, 4, 5, 7, 7, 7]
    kinds = ["set", "set", "set", "frozenset", *["set"] * 4]
    assert orders == [(line, f"{kind}.__iter__", str(names)) for line, kind in zip(lines, kinds)]


def test_a_task_is_started_by_the_task_that_made_it(traced: Traced) -> None:
    source = """
        import asyncio

        async def work():
            await asyncio.sleep(0)

        async def scenario():
            await asyncio.ensure_future(work())

        def main():
            asyncio.run(scenario())
        """
    traced.run(source)
    assert ("main/scenario#1", "main") in traced.threads()
    assert ("main/work#1", "main/scenario#1") in traced.threads()

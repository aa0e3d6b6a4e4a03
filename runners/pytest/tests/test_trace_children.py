"""Python processes that traced code starts are followed, and do not notice."""

import json
import os
import subprocess
import sys
from typing import Any, Dict, List

import pytest
from tracing import Traced

START = """
    import subprocess
    import sys

    def main():
        streams = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return subprocess.run([sys.executable, *{arguments}], check=False, **streams).stdout.decode()
    """
SHOW = """
import json, os, sys
seen = {name: os.environ.get(name) for name in ("PYTHONPATH", "UNFLAKE_TRACE")}
names = "__name__", "__file__", "__spec__", "__package__", "__cached__"
own = [repr(globals().get(name)) for name in names]
print(json.dumps([seen, own, type(__loader__).__name__, sys.argv, sys.path, "sitecustomize" in sys.modules]))
"""


@pytest.fixture(autouse=True)
def children(traced: Traced) -> Any:
    """What starts processes is as it was when a test has ended."""
    import _posixsubprocess

    modules: List[Any] = [_posixsubprocess, subprocess]
    kept: List[Dict[str, Any]] = [dict(vars(module)) for module in modules]
    from unflake_trace_children import Children

    Children(traced.tracer._birth).start()
    yield
    for module, before in zip(modules, kept):
        vars(module).update(before)


def test_a_module_and_a_script_that_are_run_tell_of_their_calls(traced: Traced) -> None:
    (traced.folder / "worker.py").write_text("print(len('abc'))\n")
    for arguments in (["worker.py"], ["-m", "worker"], ["-c", "import worker"]):
        os.chdir(traced.folder)
        assert traced.run(START.format(arguments=arguments)) == "3\n"
        found = [one for one in traced.told() if one.file == "worker.py"]
        assert [(one.callee, one.value) for one in found] == [("len", "3"), ("print", "None")], arguments
        threads = traced.threads()
        assert ("main/shop.py:7#1/python", "main") in threads, threads
        assert all(process.ended for process in traced.processes)


@pytest.mark.parametrize("arguments", [["show.py", "a"], ["-m", "show"], ["-c", SHOW], ["-I", "show.py"]])
@pytest.mark.parametrize("path", [None, "", "/nowhere"])
def test_a_process_finds_everything_as_it_would_without(
    traced: Traced, monkeypatch: Any, arguments: List[str], path: Any
) -> None:
    os.chdir(traced.folder)
    (traced.folder / "show.py").write_text(SHOW)
    if path is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", path)
    found = json.loads(traced.run(START.format(arguments=arguments)))
    plain = json.loads(subprocess.check_output([sys.executable, *arguments]))
    if arguments[0] == "-I":
        found[0], plain[0] = {}, {}  # Nobody but us can take away what such a process does not look at.
    if arguments[0] == "-m":
        # A module that is rewritten has a loader of ours, as in every traced run.
        found[1:3], plain[1:3] = found[1][:2], plain[1][:2]
    assert found == plain


def test_an_exception_is_printed_as_it_would_be_without(traced: Traced) -> None:
    os.chdir(traced.folder)
    (traced.folder / "bad.py").write_text("def f():\n    return int('x')\n\nf()\n")
    plain = subprocess.run([sys.executable, "bad.py"], stderr=subprocess.PIPE, check=False).stderr.decode()
    found = traced.run(START.format(arguments=["bad.py"]))
    assert [line for line in found.splitlines() if "^" not in line] == [
        line for line in plain.splitlines() if "^" not in line
    ]


def test_processes_of_multiprocessing_that_are_spawned_are_followed(traced: Traced) -> None:
    os.chdir(traced.folder)
    (traced.folder / "worker.py").write_text("def work(text):\n    return len(text)\n")
    source = """
        import multiprocessing
        import worker

        def main():
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=worker.work, args=("abcd",))
            process.start()
            process.join()
            return process.exitcode
        """
    assert traced.run(source) == 0
    assert [(one.callee, one.value) for one in traced.told("work")] == [("len", "4")]


def test_other_programs_get_no_variables(traced: Traced, monkeypatch: Any) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in [name for name in os.environ if name.startswith("UNFLAKE")]:
        monkeypatch.delenv(name)
    source = """
        import subprocess

        def main():
            return subprocess.check_output(["printenv"]).decode()
        """
    assert "UNFLAKE" not in traced.run(source)

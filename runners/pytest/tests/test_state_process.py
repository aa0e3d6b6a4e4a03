"""The process, and the settings of the interpreter."""

import contextvars
import gc
import locale
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from typing import Any, Iterator

import pytest
from conftest import Project

VARIABLE: "contextvars.ContextVar[int]" = contextvars.ContextVar("unflake_example")


def test_a_variable_of_the_environment(project: Project, monkeypatch: Any) -> None:
    monkeypatch.setenv("SHOP_HOME", "a")
    path = "os.environ['SHOP_HOME']"
    project.check(lambda: os.environ.update(SHOP_HOME="b"), "environment", path, "'a'", "'b'")
    project.check(lambda: os.environ.pop("SHOP_HOME"), "environment", path, "'a'", None)
    monkeypatch.delenv("SHOP_HOME")
    project.check(lambda: os.environ.update(SHOP_HOME="b"), "environment", path, None, "'b'")


def test_the_working_folder(project: Project, tmp_path: Any) -> None:
    here = os.getcwd()
    project.check(lambda: os.chdir(tmp_path), "folder", "cwd", repr(here), repr(str(tmp_path)))


def test_a_working_folder_that_was_deleted(project: Project, tmp_path: Any) -> None:
    here = os.getcwd()

    def change() -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        os.chdir(folder)
        folder.rmdir()

    project.check(change, "folder", "cwd", repr(here), "a folder that was deleted")


def test_the_search_path(project: Project) -> None:
    sys.path[:] = ["/a"]
    change = lambda: sys.path.append("/shop")  # noqa: E731
    project.check(change, "search-path", "sys.path", "['/a']", "['/a', '/shop']")


def test_a_search_path_that_was_replaced(project: Project) -> None:
    path = sys.path
    sys.path[:] = ["/a"]
    project.check(lambda: setattr(sys, "path", ["/b"]), "search-path", "sys.path", "['/a']", "['/b']")
    assert sys.path is path


def test_an_import_is_a_module_and_nothing_else(project: Project) -> None:
    (project.folder / "late").mkdir()
    (project.folder / "late" / "__init__.py").write_text("from . import part\nCACHE = {}\n")
    (project.folder / "late" / "part.py").write_text("")
    project.check(
        lambda: __import__("late"), "module", "sys.modules['late']", None, "imported, with 1 module inside"
    )
    assert "late.part" not in sys.modules


def test_an_import_of_the_standard_library_is_modules_and_nothing_else(project: Project) -> None:
    # Nobody in a test run needs this one, and it needs others.
    assert "sched" not in sys.modules
    pieces = project.changes(lambda: __import__("xmlrpc.server"))
    assert {piece["kind"] for piece in pieces} == {"module"}
    assert project.state.restore([piece["key"] for piece in pieces]) == []


def test_a_module_that_was_removed(project: Project) -> None:
    project.load("")
    project.check(lambda: sys.modules.pop("shop"), "module", "sys.modules['shop']", "<module shop>", None)


def test_a_context_variable(project: Project) -> None:
    VARIABLE.set(1)
    project.check(lambda: VARIABLE.set(2), "context-variable", "unflake_example", "1", "2")


def test_a_descriptor_that_was_left_open(project: Project, tmp_path: Any) -> None:
    (tmp_path / "log").write_text("")
    kept = []
    (piece,) = project.changes(lambda: kept.append((tmp_path / "log").open()))
    assert (piece["kind"], piece["before"], piece["after"]) == (
        "descriptor",
        None,
        repr(str(tmp_path / "log")),
    )
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    kept.clear()


def test_a_port_that_is_listened_on(project: Project) -> None:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    number = server.getsockname()[1]
    (piece,) = project.changes(lambda: server.listen(1))
    assert (piece["kind"], piece["path"]) == ("port", f"port 127.0.0.1:{number}")
    assert project.state.restore([piece["key"]]) == []
    kinds = [piece["kind"] for piece in project.compare()]
    assert kinds == ["descriptor"]
    server.close()


def test_a_thread_is_a_suspect(project: Project) -> None:
    goes_on = threading.Event()
    thread = threading.Thread(target=goes_on.wait, name="worker")
    (piece,) = project.changes(thread.start)
    assert (piece["kind"], piece["path"], piece["restorable"]) == ("thread", "worker", False)
    goes_on.set()
    thread.join()
    assert project.compare() == []


def test_a_child_process_is_ended(project: Project) -> None:
    children = []
    asked, ask = os.pipe()
    answers, answer = os.pipe()

    def start() -> None:
        children.append(subprocess.Popen(["cat", "-u"], stdin=asked, stdout=answer))
        # The parent goes on while the system still loads the program: an answer says it runs.
        os.write(ask, b"?")
        assert os.read(answers, 1) == b"?"

    (piece,) = project.changes(start)
    assert (piece["kind"], piece["path"]) == ("process", "cat -u")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    children[0].wait()
    for descriptor in (asked, ask, answers, answer):
        os.close(descriptor)


def test_the_umask(project: Project) -> None:
    old = os.umask(0o022)
    project.check(lambda: os.umask(0o077), "process", "umask", "0o22", "0o77")
    os.umask(old)


def test_the_handler_of_a_signal(project: Project) -> None:
    change = lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # noqa: E731
    piece = project.changes(change)[0]
    assert (piece["kind"], piece["path"]) == ("signal", "handler of SIGUSR1")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_the_global_random_generator(project: Project) -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    (piece,) = project.changes(random.random)
    assert (piece["kind"], piece["path"]) == ("random", "random")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    assert random.random() == expected


def test_the_global_random_generator_of_numpy(project: Project) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.random.seed(1)
    (piece,) = project.changes(numpy.random.rand)
    assert (piece["kind"], piece["path"]) == ("random", "numpy.random")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []


def test_the_locale(project: Project) -> None:
    old = locale.setlocale(locale.LC_ALL, None)
    locale.setlocale(locale.LC_ALL, "C")
    (piece,) = project.changes(lambda: locale.setlocale(locale.LC_CTYPE, "C.UTF-8"))
    assert (piece["kind"], piece["path"], piece["before"]) == ("locale", "locale", "'C'")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []
    locale.setlocale(locale.LC_ALL, old)


@pytest.fixture
def zone(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_time_zone(project: Project, zone: None) -> None:
    def change() -> None:
        os.environ["TZ"] = "EST5EDT"
        time.tzset()
        os.environ["TZ"] = "UTC"

    project.check(change, "time-zone", "time zone", "UTC/UTC", "EST/EDT")


def test_a_variable_that_nobody_has_looked_at_is_no_time_zone(project: Project, zone: None) -> None:
    def change() -> None:
        os.environ["TZ"] = "EST5EDT"

    assert [piece["kind"] for piece in project.changes(change)] == ["environment"]


def test_the_level_of_a_logger(project: Project) -> None:
    logging.getLogger("shop.cart").setLevel(0)
    path = "logging.getLogger('shop.cart').level"
    project.check(lambda: logging.getLogger("shop.cart").setLevel(10), "logging", path, None, "10")


def test_a_handler_of_a_logger(project: Project) -> None:
    logger = logging.getLogger("shop.cart")
    path = "logging.getLogger('shop.cart').handlers"
    change = lambda: logger.addHandler(logging.NullHandler())  # noqa: E731
    project.check(change, "logging", path, None, "[<NullHandler>]")


def test_logging_that_was_switched_off(project: Project) -> None:
    path = "logging.root.manager.disable"
    project.check(lambda: logging.disable(50), "logging", path, "0", "50")


def test_a_new_logger_is_no_change(project: Project) -> None:
    assert project.changes(lambda: logging.getLogger("shop.never_seen").info("hello")) == []


def test_a_filter_of_warnings(project: Project) -> None:
    with warnings.catch_warnings():
        (piece,) = project.changes(lambda: warnings.simplefilter("ignore"))
        assert (piece["kind"], piece["path"]) == ("warnings", "warnings.filters")
        assert project.state.restore([piece["key"]]) == []
        assert project.compare() == []


def test_settings_of_the_interpreter(project: Project) -> None:
    limit = sys.getrecursionlimit()
    path = "sys.getrecursionlimit()"
    change = lambda: sys.setrecursionlimit(limit + 7)  # noqa: E731
    project.check(change, "interpreter", path, str(limit), str(limit + 7))
    project.check(gc.disable, "interpreter", "gc.isenabled()", "True", "False")
    assert gc.isenabled()


def test_the_arguments(project: Project, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest"])
    change = lambda: setattr(sys, "argv", ["shop"])  # noqa: E731
    project.check(change, "interpreter", "sys.argv", "['pytest']", "['shop']")


def test_the_context_of_decimal(project: Project) -> None:
    import decimal

    path = "decimal.getcontext().prec"
    project.check(lambda: setattr(decimal.getcontext(), "prec", 5), "interpreter", path, "28", "5")


def test_the_exception_hook(project: Project) -> None:
    (piece,) = project.changes(lambda: setattr(sys, "excepthook", print))
    assert (piece["kind"], piece["path"]) == ("replaced", "sys.excepthook")
    assert project.state.restore([piece["key"]]) == []
    assert project.compare() == []


def test_a_function_of_the_language_that_was_replaced(project: Project) -> None:
    import builtins

    (piece,) = project.changes(lambda: setattr(builtins, "_shop", 1))
    assert (piece["path"], piece["owner"]) == ("builtins._shop", "builtins")
    assert project.state.restore([piece["key"]]) == []
    assert not hasattr(builtins, "_shop")

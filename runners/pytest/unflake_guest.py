"""The pytest plugin that lists the tests, and runs those it is told to.

It has no policy: which test runs next, what is rerun, how long a test may take and what an outcome
means are the driver's business (`docs/protocol.md`).
"""

import contextlib
import copy
import inspect
import os
import sys
import tempfile
import threading
from typing import Any, Dict, Generator, Iterator, List, Optional, Set, Tuple

import pytest
from _pytest.runner import runtestprotocol

from unflake_channel import Channel, Message, StackDump, clean
from unflake_reports import attempt, errored, is_plain_pass, judge, split_attempts

PROTOCOL = 1
# The files that pytest, pytest-html, pytest-reportlog and allure-pytest write at the end of a session.
IDLE_OPTIONS = ("collectonly", "setuponly", "setupplan")
REPORT_OPTIONS = ("xmlpath", "htmlpath", "report_log", "allure_report_dir")


class Guest:
    """The pytest plugin: turns commands into pytest's own calls, and hooks into messages."""

    def __init__(self, channel: Channel, stacks: StackDump, start: Message) -> None:
        self._channel, self._stacks = channel, stacks
        self._is_guest: bool = start["guest"]
        self._is_forked, self._rerunning = False, False
        self._items: Dict[Tuple[str, int], Any] = {}
        self._doctest_globals: Dict[Any, Dict[str, Any]] = {}
        self._sharing: Set[Any] = set()  # The items that found shared fixtures alive.
        self._reports: List[Any] = []
        self._collect_errors: List[Message] = []
        self._deselected, self._failed = 0, 0
        self._left_out: List[str] = []
        self._worker: Optional[Message] = None

    # --- before the run -------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self, early_config: Any) -> Iterator[None]:
        options = early_config.known_args_namespace
        if self._is_guest and getattr(options, "cov_source", None):
            options.cov_source = None  # The suite's VM writes the coverage report.
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config: Any) -> Iterator[None]:
        option = config.option
        workers = getattr(option, "numprocesses", None)
        if getattr(option, "dist", "no") != "no" or workers:
            option.numprocesses, option.dist, option.tx = None, "no", []
        interactive = bool(getattr(option, "usepdb", False) or getattr(option, "trace", False))
        self._channel.say(
            say="parsed",
            workers=workers or None,
            interactive=interactive,
            collect_only=any(getattr(option, name, False) for name in IDLE_OPTIONS),
        )
        self._worker = self._channel.hear()["worker"]
        if self._worker is not None:
            self._name_worker(self._worker)
        if self._worker is not None or self._is_guest:
            self._leave_out_reports(config)
        yield

    def _leave_out_reports(self, config: Any) -> None:
        """The framework's own reports would hold only this VM's part, and overwrite each other."""
        for name in REPORT_OPTIONS:
            value = getattr(config.option, name, None)
            if value:
                self._left_out.append(clean(str(value)))
                setattr(config.option, name, None)
        if config.pluginmanager.hasplugin("_cov"):
            self._left_out.append("of pytest-cov")
            config.pluginmanager.unregister(name="_cov")

    def _name_worker(self, worker: Message) -> None:
        os.environ["PYTEST_XDIST_WORKER"] = f"gw{worker['number']}"
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(worker["count"])
        os.environ["PYTEST_XDIST_TESTRUNUID"] = worker["run"]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection(self, session: Any) -> Generator[None, Any, None]:
        """Looks like a worker of pytest-xdist, so that fixtures keep their databases apart.

        Not before plugins are configured: those that talk to xdist's controller would miss it.
        """
        plugins = session.config.pluginmanager
        # Without xdist, pytest-rerunfailures keeps a worker's reruns to itself, and they must be seen.
        is_hidden = plugins.hasplugin("rerunfailures") and not plugins.hasplugin("xdist")
        if self._worker is not None and not is_hidden:
            session.config.workerinput = {
                "workerid": f"gw{self._worker['number']}",
                "workercount": self._worker["count"],
                "testrunuid": self._worker["run"],
                "mainargv": sys.argv,
            }
            session.config.workeroutput = {}
        outcome: Any = yield
        if outcome.excinfo is not None and self._collect_errors:
            # With -x a file that cannot be collected ends the session right here.
            self._say_tests(session, blocked=True)
            self._serve(session)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            error = {"where": clean(report.nodeid), "text": clean(report.longreprtext)}
            self._collect_errors.append(error)

    def pytest_deselected(self, items: List[Any]) -> None:
        self._deselected += len(items)

    # --- the run --------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        if self._is_guest:
            self._silence_cache(session.config.pluginmanager)
        # Registered last, so that it is asked before every plugin that reruns tests itself.
        session.config.pluginmanager.register(Bypass(self), "unflake-bypass")
        self._say_tests(session, self._is_blocked(session))
        self._serve(session)
        if session.testsfailed and self._is_blocked(session):
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _silence_cache(self, plugins: Any) -> None:
        for name in ("lfplugin", "nfplugin", "stepwiseplugin"):
            if plugins.hasplugin(name):
                plugins.unregister(name=name)

    def _is_blocked(self, session: Any) -> bool:
        return bool(self._collect_errors) and not session.config.option.continue_on_collection_errors

    def _say_tests(self, session: Any, blocked: bool) -> None:
        config = session.config
        tests: List[Message] = []
        namesakes: Dict[str, int] = {}
        for item in getattr(session, "items", []):
            name = clean(item.nodeid, None)
            place = namesakes.get(name, 0)
            namesakes[name] = place + 1
            self._items[name, place] = item
            file, line, _ = item.location
            tests.append({"test": name, "copy": place, "file": clean(str(file)), "line": (line or 0) + 1})
        seed = getattr(config.option, "randomly_seed", None)
        self._channel.say(
            say="tests",
            root=clean(str(config.rootdir)),
            config_file=clean(str(config.inipath)) if config.inipath else None,
            tests=tests,
            errors=self._collect_errors,
            blocked=blocked,
            deselected=self._deselected,
            replay=[] if seed is None else [f"--randomly-seed={seed}"],
            positional=[clean(str(path)) for path in config.option.file_or_dir or []],
            left_out=self._left_out,
        )

    def _serve(self, session: Any) -> None:
        """Does what it is told until it is told to finish."""
        while True:
            command = self._channel.hear()
            verb = command["do"]
            if verb == "run":
                self._run_batch(session, command["tests"], command["next"])
            elif verb == "rerun":
                self._rerun(session, command)
            elif verb == "fork":
                self._fork(session, command["vm"])
            elif verb == "finish":
                if self._is_forked:
                    self._tear_down_all(session)
                    os._exit(0)
                return
            else:
                raise ValueError(f"unflake's guest does not know the command {verb!r}")

    def _run_batch(self, session: Any, names: List[Message], last: Optional[Message]) -> None:
        """Runs tests until one of them does not plainly pass: then the driver decides what is next."""
        for name, following in zip(names, [*names[1:], last]):
            item = self._find(name)
            if item is None:
                self._channel.say(say="unknown", **name)
                return
            shared = wide_nodes(session)
            if shared:
                self._sharing.add(item)
            self._rerunning = False
            attempts = self._run(item, self._find(following) if following else None)
            is_last = following is last or bool(session.shouldfail or session.shouldstop)
            if not is_last and is_plain_pass(self._reports):
                self._channel.say_passed(name["test"], name["copy"], attempts[0]["seconds"])
                continue
            ended_badly = has_only_torn_down(self._reports) and bool(shared - wide_nodes(session))
            is_plain = len(attempts) == 1 and attempts[0]["outcome"] not in ("failed", "errored")
            is_held = is_last or not is_plain
            fixtures = "ended-badly" if ended_badly else "plain"
            self._say_ran(session, name, attempts, fixtures, held=is_held)
            if is_held:
                return

    def _rerun(self, session: Any, command: Message) -> None:
        name = {"test": command["test"], "copy": command["copy"]}
        item = self._find(name)
        if item is None:
            self._channel.say(say="unknown", **name)
            return
        following = self._find(command["next"]) if command["next"] else None
        if following is item:
            # Itself once more: a sibling keeps the wider fixtures alive and ends its own.
            following = copy.copy(item)
        self._rerunning, rebuilt, trouble = True, False, None
        self._forget(item)
        if not command["keep"]:
            rebuilt = bool(wide_nodes(session)) or item in self._sharing
            trouble = self._tear_down_all(session)
        attempts = self._run(item, following)
        if trouble is not None:
            attempts = [errored(trouble)]
        self._say_ran(session, name, attempts, "rebuilt" if rebuilt else "plain", held=True)

    def _run(self, item: Any, following: Any) -> List[Message]:
        """Runs an item through pytest's own protocol, and judges what was reported."""
        self._reports = []
        self._remember(item)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except (KeyboardInterrupt, pytest.exit.Exception) as error:
            why = "exit" if isinstance(error, pytest.exit.Exception) else "interrupt"
            self._channel.say(say="stopped", why=why, message=clean(str(error)))
            raise
        if is_plain_pass(self._reports):
            return [attempt("passed", self._reports)]
        return [judge(reports) for reports in split_attempts(self._reports)]

    def _say_ran(
        self, session: Any, name: Message, attempts: List[Message], fixtures: str, held: bool
    ) -> None:
        stop = clean(str(session.shouldfail or session.shouldstop or "")) or None
        self._channel.say(say="ran", **name, attempts=attempts, fixtures=fixtures, held=held, stop=stop)

    def _find(self, name: Message) -> Any:
        return self._items.get((name["test"], name["copy"]))

    def _tear_down_all(self, session: Any) -> Optional[str]:
        """Ends every fixture that is still alive, so that the rerun sets all of them up anew."""
        state = session._setupstate
        try:
            if "item" in inspect.signature(state.teardown_exact).parameters:
                state.teardown_exact(None, None)  # pytest 6
            else:
                state.teardown_exact(None)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            return clean(
                f"tearing down the fixtures before the rerun failed: {type(error).__name__}: {error}"
            )
        return None

    def _remember(self, item: Any) -> None:
        """A doctest empties its globals when it has run: keep them for the next time."""
        if hasattr(item, "dtest") and item.dtest is not None and item not in self._doctest_globals:
            self._doctest_globals[item] = dict(item.dtest.globs)

    def _forget(self, item: Any) -> None:
        """Drops what the item holds from its last run: a fresh request has none of it."""
        item._report_sections = []  # What the last run wrote is not this run's.
        if item in self._doctest_globals:
            item.dtest.globs = dict(self._doctest_globals[item])
        if isinstance(item, pytest.Function) and item.cls is not None:
            # Since pytest 7 an item keeps its class's instance, and the method bound to it.
            item.__dict__.pop("_instance", None)
            item.__dict__.pop("_obj", None)

    def _fork(self, session: Any, vm: int) -> None:
        threads = count_threads()
        if threads > 0 or not hasattr(os, "fork"):
            number = "1 more thread is" if threads == 1 else f"{threads} more threads are"
            why = f"{number} alive" if threads else "this platform cannot fork"
            self._channel.say(say="unforked", vm=vm, why=why)
            return
        if self._is_forked:
            # pytest's failure texts ask which module a frame belongs to, and the first answer takes
            # tens of milliseconds: what is known here is known in every copy.
            inspect.getmodule(sys._getframe())
        child = os.fork()
        if child:
            with contextlib.suppress(ChildProcessError):  # The project may have SIGCHLD ignored.
                os.waitpid(child, 0)
            self._channel.say(say="forked", vm=vm)
            return
        # The copy is a grandchild whose parent ends at once: a test that waits for its own children,
        # or counts them, must not meet it.
        if os.fork():
            os._exit(0)
        os.setpgid(0, 0)
        self._is_forked = True
        self._channel.move(vm)
        self._stacks.arm(vm)
        renew_capture(session.config)
        self._channel.say(say="hello", **introduction(vm, self._stacks))

    # --- what pytest reports --------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)
        self._failed += bool(report.failed and not hasattr(report, "wasxfail"))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_sessionfinish(self, session: Any) -> Iterator[None]:
        """Tells of a failure that is no test's: a coverage limit, or a hook of the project."""
        yield
        extra = session.testsfailed - self._failed - len(self._collect_errors)
        self._channel.say(say="finished", status=int(session.exitstatus), extra=max(extra, 0))

    def run_again(self, item: Any, nextitem: Any) -> Optional[bool]:
        """Runs a rerun itself; leaves a first run to pytest and the project's plugins."""
        if not self._rerunning:
            return None
        self._reports.extend(runtestprotocol(item, nextitem=nextitem, log=False))
        return True


class Bypass:
    """Takes reruns away from plugins that would rerun them once more."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Optional[bool]:
        return self._guest.run_again(item, nextitem)


def count_threads() -> int:
    """How many threads beside this one a fork would lose."""
    # pytest-rerunfailures starts a server for xdist's workers, which nobody asks anything here.
    targets = [getattr(t, "_target", None) for t in threading.enumerate()]
    idle = [one for one in targets if getattr(one, "__module__", "") == "pytest_rerunfailures"]
    return len(sys._current_frames()) - 1 - len(idle)


def wide_nodes(session: Any) -> Set[Any]:
    """The classes, modules and so on that have fixtures alive which more than one test shares."""
    state = session._setupstate
    if hasattr(state, "_finalizers"):  # pytest 6
        return {node for node, finalizers in state._finalizers.items() if finalizers}
    # Each node's first finalizer is its own tear-down; all others are those of fixtures.
    return {node for node, (finalizers, _) in state.stack.items() if len(finalizers) > 1}


def has_only_torn_down(reports: List[Any]) -> bool:
    """Whether something failed, and only in a tear-down."""
    bad = [report.when for report in reports if report.outcome in ("failed", "rerun")]
    return bool(bad) and all(when == "teardown" for when in bad)


def renew_capture(config: Any) -> None:
    """Gives a forked VM capture files of its own: a fork shares the position in its parent's."""
    manager = config.pluginmanager.getplugin("capturemanager")
    capturing = getattr(manager, "_global_capturing", None)
    for name in ("out", "err"):
        stream: Any = getattr(capturing, name, None)
        try:
            fd = stream.tmpfile.fileno()
        except (AttributeError, OSError, ValueError):
            continue  # Captured in memory, or not at all.
        target: Any = getattr(stream, "targetfd", None)
        follows = target is not None and os.path.sameopenfile(target, fd)
        with tempfile.TemporaryFile(buffering=0) as fresh:
            os.dup2(fresh.fileno(), fd, inheritable=False)
        if follows:
            os.dup2(fd, target)


def introduction(vm: int, stacks: StackDump) -> Message:
    return {
        "protocol": PROTOCOL,
        "vm": vm,
        "pid": os.getpid(),
        "framework": "pytest",
        "framework_version": pytest.__version__,
        "language": "Python",
        "language_version": ".".join(map(str, sys.version_info[:3])),
        "stack_signal": stacks.signal,
    }

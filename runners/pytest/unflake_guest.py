"""The pytest plugin that lists the tests, and runs those it is told to.

It has no policy: which test runs next, what is rerun, how long a test may take and what an outcome
means are the driver's business (`docs/protocol.md`).
"""

import os
import sys
import sysconfig
from typing import Any, Generator, Iterator, List, Optional

import pytest

from unflake_chance import Chance
from unflake_channel import Channel, Message, StackDump, clean
from unflake_failures import Failures
from unflake_forks import Forks
from unflake_installed import installed
from unflake_items import Bypass, Items
from unflake_params import Digests

PROTOCOL = 1
# The files that pytest, pytest-html, pytest-reportlog and allure-pytest write at the end of a session.
IDLE_OPTIONS = ("collectonly", "setuponly", "setupplan")
REPORT_OPTIONS = ("xmlpath", "htmlpath", "report_log", "allure_report_dir")


class Guest:
    """The pytest plugin: turns commands into pytest's own calls, and hooks into messages."""

    def __init__(
        self, channel: Channel, stacks: StackDump, chance: Chance, start: Message, tracer: Any = None
    ) -> None:
        self._channel = channel
        self._is_guest: bool = start["guest"]
        self._eye: Any = start.get("eye")  # What watches what is used, if anything does.
        self._items, self._forks = Items(channel), Forks(channel, stacks, chance)
        self._items.tracer, self._items.forks = tracer, self._forks
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
        session.config.pluginmanager.register(Bypass(self._items), "unflake-bypass")
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
        imported_from, digests = import_roots(), Digests()
        self._items.failures = Failures(str(config.rootdir), imported_from)
        for item in getattr(session, "items", []):
            name = clean(item.nodeid, None)
            place = self._items.add(name, item)
            file, line, _ = item.location
            test = {"test": name, "copy": place, "file": clean(str(file)), "line": (line or 0) + 1}
            params = digests.of(item) if hasattr(item, "callspec") else None
            if params is not None:
                test["params"] = params
            tests.append(test)
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
            imported_from=imported_from,
            search_path=[clean(os.path.abspath(folder)) for folder in sys.path],
            # A watched guest would seem to have looked at all that.
            installed=None if self._is_guest else installed(str(config.rootdir)),
            chance=self._forks.chance.digests(),
        )

    def _serve(self, session: Any) -> None:
        """Does what it is told until it is told to finish."""
        while True:
            command = self._channel.hear()
            verb = command["do"]
            if verb == "run":
                self._items.run_batch(session, command["tests"], command["next"])
            elif verb == "rerun":
                self._items.rerun(session, command)
            elif verb == "twice" and command["apart"]:
                if self._forks.begin_apart(session, command.get("redraw", [])):
                    self._twice_apart(session, command)
            elif verb == "twice":
                self._items.twice(session, command)
            elif verb == "mark":
                self._channel.say(say="marked", **self._mark(session))
            elif verb == "compare":
                self._items.import_files(session, command.get("import", []))
                self._channel.say(say="changed", **self._items.state.compare())
            elif verb == "locate":
                self._channel.say(say="located", places=self._items.locate(session, command))
            elif verb == "fork":
                self._forks.make(session, command["vm"], command.get("redraw", []))
            elif verb == "finish":
                if self._forks.is_copy:
                    self._items.tear_down_all(session)
                    os._exit(0)
                return
            else:
                raise ValueError(f"unflake's guest does not know the command {verb!r}")

    def _mark(self, session: Any) -> Message:
        """Remembers the state. What it takes is loaded only where it is asked for."""
        sys.path.insert(0, os.path.dirname(__file__))
        try:
            import unflake_state
            import unflake_state_places
        finally:
            del sys.path[0]
        self._items.state = unflake_state.State(session.config, import_roots())
        self._items.find_places = unflake_state_places.locate
        marked: Message = self._items.state.mark()
        return marked

    def _twice_apart(self, session: Any, command: Message) -> None:
        """The work of a copy. However it ends, the session and its exit hooks are the original's."""
        try:
            if self._eye is not None and command.get("usage"):
                self._eye.move(command["usage"])
                self._items.eye = self._eye
            self._items.twice(session, command)
            self._items.tear_down_all(session)
            if command.get("compare"):
                self._channel.say(say="changed", **self._items.state.compare())
            self._forks.leave(0)
        finally:
            self._forks.leave(1)

    # --- what pytest reports --------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: Any) -> Generator[None, Any, None]:
        if self._items.tracer is not None and call.excinfo is not None:
            self._items.tracer.note(call.excinfo.value)
        outcome: Any = yield
        if call.excinfo is not None and outcome.excinfo is None and outcome.get_result().failed:
            self._items.failures.note(outcome.get_result(), call.excinfo)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._items.reports.append(report)
        self._failed += bool(report.failed and not hasattr(report, "wasxfail"))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_sessionfinish(self, session: Any) -> Iterator[None]:
        """Tells of a failure that is no test's: a coverage limit, or a hook of the project."""
        yield
        extra = session.testsfailed - self._failed - len(self._collect_errors)
        self._channel.say(say="finished", status=int(session.exitstatus), extra=max(extra, 0))


def import_roots() -> List[str]:
    """The folders from which modules were imported that are neither installed nor Python's own."""
    standard = (sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep)
    roots = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or file.startswith(standard) or "-packages" + os.sep in file:
            continue
        parts = name.count(".") + 1 + (os.path.basename(file) == "__init__.py")
        root = os.path.abspath(file)
        for _ in range(parts):
            root = os.path.dirname(root)
        roots.add(clean(root))
    return sorted(roots)

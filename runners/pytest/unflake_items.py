"""Runs the tests that it is told to, as pytest would, once or again, and says how each ended.

What pytest keeps about a test from one run to the next is undone here, so that running it again is
like running it in a suite.
"""

import contextlib
import copy
import gc
import inspect
import os
import pathlib
from typing import Any, Dict, List, Optional, Set, Tuple

import pytest
from _pytest.runner import runtestprotocol

from unflake_channel import Channel, Message, clean
from unflake_reports import attempt, errored, is_plain_pass, judge, split_attempts


class Items:
    """The tests of this VM, by name, and how they are run."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._items: Dict[Tuple[str, int], Any] = {}
        self._namesakes: Dict[str, int] = {}
        self._doctest_globals: Dict[Any, Dict[str, Any]] = {}
        self._sharing: Set[Any] = set()  # The items that found shared fixtures alive.
        self._rerunning = False
        self.state: Any = None  # What was marked, if anything was.
        self.find_places: Any = None
        self.forks: Any = None  # What makes copies of this VM.
        self.tracer: Any = None  # What records runs, if they are to be recorded.
        self.eye: Any = None  # What writes down what is used, if anything does.
        self.failures: Any = None  # What was raised in the run, once tests are listed.
        self.reports: List[Any] = []

    def add(self, name: str, item: Any) -> int:
        """Takes an item in; its place among those of the same name."""
        place = self._namesakes.get(name, 0)
        self._namesakes[name] = place + 1
        self._items[name, place] = item
        return place

    def run_batch(self, session: Any, names: List[Message], last: Optional[Message]) -> None:
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
            attempts = self._run_item(item, self._find(following) if following else None)
            is_last = following is last or bool(session.shouldfail or session.shouldstop)
            if not is_last and is_plain_pass(self.reports):
                self._channel.say_passed(name["test"], name["copy"], attempts[0]["seconds"])
                continue
            ended_badly = has_only_torn_down(self.reports) and bool(shared - wide_nodes(session))
            is_plain = len(attempts) == 1 and attempts[0]["outcome"] not in ("failed", "errored")
            is_held = is_last or not is_plain
            fixtures = "ended-badly" if ended_badly else "plain"
            self._say_ran(session, name, attempts, fixtures, held=is_held)
            if is_held:
                return

    def rerun(self, session: Any, command: Message) -> None:
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
            trouble = self.tear_down_all(session)
        attempts = self._run_item(item, following)
        if trouble is not None:
            attempts = [errored(trouble)]
        self._say_ran(session, name, attempts, "rebuilt" if rebuilt else "plain", held=True)

    def twice(self, session: Any, command: Message) -> None:
        """Runs each test two times in a row, or once, unseen by reports and by plugins that rerun.

        Shared fixtures stay alive from the first run to the second, as between two tests of a suite,
        unless something is to be done between them.
        """
        names: List[Message] = command["tests"]
        if command.get("brief") and command["apart"]:
            # A text with the source takes pytest tens of milliseconds: it parses the whole file.
            session.config.option.tbstyle = "line"
        if command.get("restore"):
            self.state.restore(command["restore"])
        branches: Dict[int, List[Message]] = {}
        for branch in command.get("branches", []):
            branches.setdefault(branch["after"], []).append(branch)
        for done, (name, following) in enumerate(zip(names, [*names[1:], command.get("next")])):
            if done and self.eye is not None:
                self.eye.note("tested", done)
            for branch in branches.get(done, []):
                self._branch_off(session, branch["tests"], command.get("redraw", []))
            item = self._find(name)
            if item is None:
                self._channel.say(say="unknown", **name)
                return
            after = self._find(following) if following else None
            is_last = name is names[-1]
            if after is item:
                after = copy.copy(item)  # Itself once more: a sibling ends its own fixtures only.
            if command["between"] is None:
                self._say_again(session, name, item, after, held=is_last)
                continue
            self._say_again(session, name, item, copy.copy(item), held=False)
            trouble = self.tear_down_all(session) if command["between"] == "tear-down" else None
            if command["between"] == "collect":
                gc.collect()
            self._say_again(session, name, item, after, held=is_last, trouble=trouble)

    def _branch_off(self, session: Any, tests: List[Message], redraw: List[str]) -> None:
        """Lets a copy run other tests here, and end; this VM goes on as if nothing had been."""
        self._channel.say(say="branching")
        self._channel.hear()
        if not self.forks.begin_apart(session, redraw, is_branch=True):
            return
        try:
            # The test before did not know what would follow: fixtures that are not shared end now.
            with contextlib.suppress(Exception, pytest.fail.Exception, pytest.skip.Exception):
                self._tear_down(session, self._find(tests[0]))
            self.twice(session, {"tests": tests, "between": None, "apart": True})
            self.tear_down_all(session)
            self.forks.leave(0)
        finally:
            self.forks.leave(1)

    def locate(self, session: Any, command: Message) -> List[Message]:
        """Runs tests once, and says where pieces of state are written."""
        order = {**command, "between": None, "apart": False}

        def run() -> None:
            self.import_files(session, command.get("import", []))
            self.twice(session, order)

        places: List[Message] = self.find_places(self.state, command["keys"], run)
        return places

    def import_files(self, session: Any, files: List[str]) -> None:
        """Imports test files as collecting them would, late. What that raises is the file's own matter."""
        for file in files:
            path = os.path.join(str(session.config.rootdir), file)
            with contextlib.suppress(Exception, pytest.fail.Exception, pytest.skip.Exception):
                try:
                    module: Any = pytest.Module.from_parent(session, path=pathlib.Path(path))
                except TypeError:  # pytest 6
                    module = pytest.Module.from_parent(session, fspath=type(session.fspath)(path))
                _ = module.obj

    def _say_again(
        self,
        session: Any,
        name: Message,
        item: Any,
        following: Any,
        held: bool,
        trouble: Optional[str] = None,
    ) -> None:
        self._rerunning = True
        self._forget(item)
        attempts = self._run_item(item, following)
        if trouble is not None:
            attempts = [errored(trouble)]
        elif not held and is_plain_pass(self.reports):
            self._channel.say_passed(name["test"], name["copy"], attempts[0]["seconds"])
            return
        self._say_ran(session, name, attempts, "plain", held=held)

    def _run_item(self, item: Any, following: Any) -> List[Message]:
        """Runs an item through pytest's own protocol, and judges what was reported."""
        self.reports = []
        self.failures.forget()
        self._remember(item)
        recording = self.tracer.recording(item) if self.tracer else contextlib.nullcontext()
        try:
            with recording:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except (KeyboardInterrupt, pytest.exit.Exception) as error:
            why = "exit" if isinstance(error, pytest.exit.Exception) else "interrupt"
            self._channel.say(say="stopped", why=why, message=clean(str(error)))
            raise
        if is_plain_pass(self.reports):
            return [attempt("passed", self.reports)]
        return [judge(reports, self.failures) for reports in split_attempts(self.reports)]

    def _say_ran(
        self, session: Any, name: Message, attempts: List[Message], fixtures: str, held: bool
    ) -> None:
        stop = clean(str(session.shouldfail or session.shouldstop or "")) or None
        self._channel.say(say="ran", **name, attempts=attempts, fixtures=fixtures, held=held, stop=stop)

    def _find(self, name: Message) -> Any:
        return self._items.get((name["test"], name["copy"]))

    def tear_down_all(self, session: Any) -> Optional[str]:
        """Ends every fixture that is still alive, so that the rerun sets all of them up anew."""
        state = session._setupstate
        if not state.stack:
            return None
        try:
            self._tear_down(session, None)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            return clean(
                f"tearing down the fixtures before the rerun failed: {type(error).__name__}: {error}"
            )
        return None

    def _tear_down(self, session: Any, following: Any) -> None:
        """Ends the fixtures that the following test does not share; all, if none follows."""
        state = session._setupstate
        if "item" in inspect.signature(state.teardown_exact).parameters:
            state.teardown_exact(None, following)  # pytest 6
        else:
            state.teardown_exact(following)

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

    def run_again(self, item: Any, nextitem: Any) -> Optional[bool]:
        """Runs a rerun itself; leaves a first run to pytest and the project's plugins."""
        if not self._rerunning:
            return None
        self.reports.extend(runtestprotocol(item, nextitem=nextitem, log=False))
        return True


class Bypass:
    """Takes reruns away from plugins that would rerun them once more."""

    def __init__(self, items: Items) -> None:
        self._items = items

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Optional[bool]:
        return self._items.run_again(item, nextitem)


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

"""Copies of this VM: what must be settled before and after a fork."""

import contextlib
import inspect
import os
import signal
import sys
import tempfile
import threading
from typing import Any, List, Optional

import pytest

from unflake_chance import Chance
from unflake_channel import Channel, Message, StackDump

PROTOCOL = 1


class Forks:
    """Makes copies of this VM that go on by themselves, or that do one thing and end."""

    def __init__(self, channel: Channel, stacks: StackDump, chance: Chance) -> None:
        self._channel, self._stacks, self.chance = channel, stacks, chance
        self.is_copy = False
        self._is_warm = False
        self.leave = os._exit  # Taken now: a test may replace it and forget to put it back.

    def make(self, session: Any, vm: int, redraw: List[str]) -> None:
        """Forks a copy that goes on by itself; there the generators `redraw` draw anew."""
        why = why_not()
        if why is not None:
            self._channel.say(say="unforked", vm=vm, why=why)
            return
        if self.is_copy:
            self._warm_up()
        self.chance.keep()
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
        self.chance.settle(redraw)
        self.is_copy = True
        self._channel.move(vm)
        self._stacks.arm(vm)
        renew_capture(session.config)
        self._channel.say(say="hello", **introduction(vm, self._stacks))

    def begin_apart(self, session: Any, redraw: List[str], is_branch: bool = False) -> bool:
        """Forks a copy that is to do one thing in this VM's place, if it can. True in the copy.

        The original waits until the copy has ended, and tells how. In a branch, tests have run before.
        """
        why = why_not()
        if why is not None:
            self._channel.say(say="unforked", vm=None, why=why)
            return False
        self._warm_up()
        self.chance.keep()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            self.chance.settle(redraw, is_branch)
            self._channel.adopt()
            renew_capture(session.config)
            self._channel.say(say="apart", pid=os.getpid())
            return True
        how = wait_for(child)
        # Processes that it left running must not outlive it.
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        self._channel.say(say="rejoined", how=how)
        return False

    def _warm_up(self) -> None:
        """pytest's failure texts ask which module a frame belongs to, and the first answer takes tens
        of milliseconds: what is known here is known in every copy."""
        if not self._is_warm:
            self._is_warm = True
            inspect.getmodule(sys._getframe())


def wait_for(child: int) -> Optional[str]:
    """The end of a child in words; `None` for a plain end."""
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:  # The project has SIGCHLD ignored.
        return None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"killed by signal {number} ({signal.Signals(number).name})"
    code = os.WEXITSTATUS(status)
    return f"exit status {code}" if code else None


def why_not() -> Optional[str]:
    """Why no copy can be made, if none can."""
    threads = count_threads()
    if threads > 0:
        number = "1 more thread is" if threads == 1 else f"{threads} more threads are"
        return f"{number} alive"
    return None if hasattr(os, "fork") else "this platform cannot fork"


def count_threads() -> int:
    """The number of threads, besides this one, that a fork would lose."""
    # pytest-rerunfailures starts a server for xdist's workers, which nobody asks anything here.
    targets = [getattr(t, "_target", None) for t in threading.enumerate()]
    idle = [one for one in targets if getattr(one, "__module__", "") == "pytest_rerunfailures"]
    return len(sys._current_frames()) - 1 - len(idle)


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
        fresh = open_nameless()
        os.dup2(fresh, fd, inheritable=False)
        os.close(fresh)
        if follows:
            os.dup2(fd, target)


def open_nameless() -> int:
    """A new file without a name. In memory it is there at once: a copy for one test lives for
    milliseconds, and to find a name takes one of them."""
    try:
        return os.memfd_create("unflake")
    except (AttributeError, OSError):
        with tempfile.TemporaryFile(buffering=0) as file:
            return os.dup(file.fileno())


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

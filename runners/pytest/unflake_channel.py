"""The guest's own way to the driver: two pipes, and a file for the stacks of a hung test.

Nothing here knows pytest. `docs/protocol.md` says what travels over the channel.
"""

import faulthandler
import fcntl
import json
import os
import signal
import sys
from typing import Any, Dict, Optional, Tuple

TEXT_LIMIT = 64 * 1024
Message = Dict[str, Any]
PASSED = '"attempts": [{"outcome": "passed", "message": "", "text": "", "output": "", '
GOES_ON = '"fixtures": "plain", "held": false, "stop": null'


class Channel:
    """Two pipes to the driver. They survive tests that close, patch or fork what they stand on.

    Every function it needs later is taken at the start, because a test may replace `os.write` and
    forget to put it back.
    """

    def __init__(self, folder: str, vm: int) -> None:
        self._open, self._write, self._read, self._close = os.open, os.write, os.read, os.close
        self._fstat, self._getpid, self._exit, self._fcntl = os.fstat, os.getpid, os._exit, fcntl.fcntl
        self._encode, self._decode = json.JSONEncoder().encode, json.JSONDecoder().decode
        self._quote = json.encoder.encode_basestring_ascii
        self._folder, self._vm = folder, vm
        self._connect()

    def _connect(self) -> None:
        self._messages = self._open_high("messages", os.O_WRONLY)
        self._commands = self._open_high("commands", os.O_RDONLY)
        self._identity = [self._inode(self._messages), self._inode(self._commands)]
        self._owner, self._heard = self._getpid(), b""

    def _open_high(self, name: str, flags: int) -> int:
        """A pipe under a high descriptor: the low ones are left as under plain pytest."""
        fd = self._open(f"{self._folder}/{self._vm}.{name}", flags | os.O_CLOEXEC)
        high = lift(fd, self._fcntl)
        self._close(fd)
        return high

    def _inode(self, fd: int) -> Optional[Tuple[int, int]]:
        try:
            status = self._fstat(fd)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _secure(self) -> None:
        """Makes sure that the descriptors are still the channel, and not files that a test opened."""
        if self._getpid() != self._owner:
            # A test forked and its child ran on into the test loop: only the parent may speak.
            self._exit(1)
        if [self._inode(self._messages), self._inode(self._commands)] != self._identity:
            self._connect()
            self.say(say="back", vm=self._vm)

    def move(self, vm: int) -> None:
        """Opens a channel of its own for a forked copy of this VM."""
        self._close(self._messages)
        self._close(self._commands)
        self._vm = vm
        self._connect()

    def adopt(self) -> None:
        """Lets a forked copy speak in this VM's place while the original is silent."""
        self._owner = self._getpid()

    def say(self, **message: Any) -> None:
        self.say_line(self._encode(message))

    def say_passed(self, test: str, copy: int, seconds: float) -> None:
        """The `ran` of a test that plainly passed and after which the runner goes on: most of all
        messages, so it is put together by hand."""
        name = f'"test": {self._quote(test)}, "copy": {copy}'
        self.say_line(f'{{"say": "ran", {name}, {PASSED}"seconds": {seconds!r}}}], {GOES_ON}}}')

    def say_line(self, line: str) -> None:
        """Says what is encoded already."""
        self._secure()
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[self._write(self._messages, data) :]

    def hear(self) -> Message:
        """The next command. Whoever calls it has just spoken, so the channel is secure."""
        while b"\n" not in self._heard:
            data = self._read(self._commands, 65536)
            if not data:
                self._exit(0)  # The driver is gone, and with it whoever could use a result.
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        command: Message = self._decode(line.decode("utf-8"))
        return command


def lift(fd: int, duplicate: Any = fcntl.fcntl) -> int:
    """A copy of `fd` with a high number, or as high as the limits allow."""
    for lowest in (512, 128, 0):
        try:
            return int(duplicate(fd, fcntl.F_DUPFD_CLOEXEC, lowest))
        except OSError:
            continue
    raise OSError("no file descriptor is free for unflake's channel")


def clean(text: str, limit: Optional[int] = TEXT_LIMIT) -> str:
    """`text` without lone surrogates, cut in the middle when it is longer than `limit`."""
    if limit is not None and len(text) > limit:
        dropped = len(text) - limit
        text = f"{text[: limit // 2]}\n[… {dropped} characters left out …]\n{text[-limit // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class StackDump:
    """Lets the driver see where a hung test is: a signal writes all stacks into a file."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        # Nobody else uses these: Linux keeps SIGSTKFLT (16) without a meaning.
        self.signal = 16 if sys.platform.startswith("linux") else int(getattr(signal, "SIGINFO", 12))

    def arm(self, vm: int) -> None:
        path = os.path.join(self._folder, f"{vm}.stack")
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        high = lift(fd)
        os.close(fd)
        faulthandler.register(self.signal, file=high, all_threads=True, chain=False)

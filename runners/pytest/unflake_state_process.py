"""The process as the system sees it: environment, folder, descriptors, ports, threads, children, signals.

Much of it is read from `/proc`. Where that is missing, the probe says so and looks at the rest.
"""

import _socket
import contextlib
import gc
import io
import os
import signal
import threading
import time
from os import close, environ, getcwd, getpid, kill, listdir, readlink, waitpid
from signal import getsignal
from typing import Any, Dict, List, Optional, Tuple

from unflake_state_probes import Changes, Probe, Setting, read_bytes
from unflake_state_values import ABSENT, dict_getter, show

ENVIRON: Dict[bytes, bytes] = environ.__dict__["_data"]
thread_dict = dict_getter(threading.Thread)
SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def process_probes() -> List[Probe]:
    return [
        Descriptors(),
        Ports(),
        Children(),
        Environment(),
        Folder(),
        TimeZone(),
        Setting("process", "umask", take_umask, os.umask, lambda mask: oct(mask)),
        Threads(),
        Signals(),
    ]


class Environment(Probe):
    kind = "environment"

    def take(self) -> Dict[str, Any]:
        pairs = [(os.fsdecode(name), os.fsdecode(value)) for name, value in dict.copy(ENVIRON).items()]
        return {
            f"os.environ[{name!r}]": (name, value) for name, value in pairs if name != "PYTEST_CURRENT_TEST"
        }

    def show(self, token: Any) -> Optional[str]:
        return show(token[1])

    def put(self, path: str, before: Any, after: Any) -> None:
        if before is ABSENT:
            environ.pop(after[0], None)
        else:
            environ[before[0]] = before[1]


class TimeZone(Setting):
    """The zone that the C library uses. The variable alone changes nothing until it is told to look."""

    def __init__(self) -> None:
        super().__init__("time-zone", "time zone", take_zone, put_zone, lambda zone: "/".join(zone[1]))

    def is_same(self, before: Any, after: Any) -> bool:
        return super().is_same(before[1:], after[1:])


def take_zone() -> Any:
    return environ.get("TZ"), time.tzname, time.timezone, time.altzone


def put_zone(before: Any) -> None:
    """Sets the zone that was, whatever the environment says now."""
    now = environ.get("TZ")
    set_variable("TZ", before[0])
    time.tzset()
    set_variable("TZ", now)


def set_variable(name: str, value: Optional[str]) -> None:
    if value is None:
        environ.pop(name, None)
    else:
        environ[name] = value


class Folder(Probe):
    """The working folder, which may have been deleted."""

    kind = "folder"

    def take(self) -> Dict[str, Any]:
        try:
            return {"cwd": getcwd()}
        except FileNotFoundError:
            return {"cwd": None}

    def show(self, token: Any) -> Optional[str]:
        return "a folder that was deleted" if token is None else show(token)

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not None

    def put(self, path: str, before: Any, after: Any) -> None:
        os.chdir(before)


def take_umask() -> int:
    """Read, because asking the system for it would change it for a moment."""
    for line in read("/proc/self/status").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    raise OSError("the system does not tell the umask")


class Signals(Probe):
    kind = "signal"

    def take(self) -> Dict[str, Any]:
        return {name_signal(number): getsignal(number) for number in SIGNALS}

    def is_same(self, before: Any, after: Any) -> bool:
        # Handlers of the system are members of an enumeration, the others any object.
        return before is after

    def show(self, token: Any) -> Optional[str]:
        return str(token.name) if type(token) is signal.Handlers else super().show(token)

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is not None

    def put(self, path: str, before: Any, after: Any) -> None:
        number = next(number for number in SIGNALS if name_signal(number) == path)
        signal.signal(number, before)


def name_signal(number: int) -> str:
    try:
        return f"handler of {signal.Signals(number).name}"
    except ValueError:
        return f"handler of signal {number}"


class Threads(Probe):
    kind = "thread"

    def take(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        for thread in threading.enumerate():
            name = thread_dict(thread).get("_name")
            found[number_twins(name if type(name) is str else "?", found)] = thread
        return found

    def is_same(self, before: Any, after: Any) -> bool:
        return before is after

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return False


def number_twins(name: str, known: Dict[str, Any]) -> str:
    number, path = 2, name
    while path in known:
        path, number = f"{name} #{number}", number + 1
    return path


class Children(Probe):
    kind = "process"

    def take(self) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        for thread in listdir("/proc/self/task"):
            with contextlib.suppress(FileNotFoundError):
                for child in sorted(map(int, read(f"/proc/self/task/{thread}/children").split())):
                    command = command_of(child)
                    if command is not None:
                        found[number_twins(command, found)] = child
        return found

    def show(self, token: Any) -> Optional[str]:
        return "running"

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is ABSENT

    def put(self, path: str, before: Any, after: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            kill(after, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            waitpid(after, 0)


def command_of(pid: int) -> Optional[str]:
    """The command that started a child; `None` if the child has ended."""
    try:
        status = read(f"/proc/{pid}/stat")
        words = read(f"/proc/{pid}/cmdline").split("\0")
    except OSError:
        return None
    name, _, rest = status.partition("(")[2].rpartition(")")
    if rest.split()[0] == "Z":
        return None
    # A child has no arguments to read while the system still loads its program.
    return " ".join(words).strip()[:120] or name


def read(path: str) -> str:
    return read_bytes(path).decode("utf-8", "backslashreplace")


class Descriptors(Probe):
    kind = "descriptor"

    def take(self) -> Dict[str, Any]:
        return {f"descriptor {number}": target for number, target in descriptors().items()}

    def show(self, token: Any) -> Optional[str]:
        return show(str(token).partition(":[")[0])

    def group(self, changes: Changes) -> Changes:
        ports = {f"socket:[{inode}]" for _, inode in listening().values()}
        return {path: change for path, change in changes.items() if change[1] not in ports}

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is ABSENT

    def put(self, path: str, before: Any, after: Any) -> None:
        close_descriptor(int(path.split()[1]))


def descriptors() -> Dict[int, str]:
    found = {}
    for name in listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # That of the listing itself is closed already.
            target = readlink(f"/proc/self/fd/{name}")
            if target != f"/proc/{getpid()}/fd":
                found[int(name)] = target
    return found


def close_descriptor(number: int) -> None:
    """Closes it through the object that owns it, so that this one does not close another later."""
    for one in gc.get_objects():
        kind = type(one)
        if kind is io.FileIO and not one.closed and one.fileno() == number:
            one.close()
            return
        if issubclass(kind, _socket.socket) and _socket.socket.fileno(one) == number:
            _socket.socket.close(one)
            return
    close(number)


class Ports(Probe):
    """Sockets of this process that wait for connections."""

    kind = "port"

    def take(self) -> Dict[str, Any]:
        return dict(listening())

    def show(self, token: Any) -> Optional[str]:
        return f"listening, descriptor {token[0]}"

    def can_put(self, path: str, before: Any, after: Any) -> bool:
        return before is ABSENT

    def put(self, path: str, before: Any, after: Tuple[int, str]) -> None:
        close_descriptor(after[0])


def listening() -> Dict[str, Tuple[int, str]]:
    """The ports that this process listens on, each with its descriptor and what the system calls it."""
    sockets = {target: number for number, target in descriptors().items() if target.startswith("socket:[")}
    found: Dict[str, Tuple[int, str]] = {}
    for table in ("tcp", "tcp6") if sockets else ():
        with contextlib.suppress(FileNotFoundError):
            for line in read(f"/proc/self/net/{table}").splitlines()[1:]:
                words = line.split()
                owner = sockets.get(f"socket:[{words[9]}]")
                if words[3] == "0A" and owner is not None:
                    found[write_address(words[1])] = (owner, words[9])
    return found


def write_address(text: str) -> str:
    host, _, port = text.partition(":")
    if len(host) != 8:
        return f"port {int(port, 16)} (IPv6)"
    numbers = [str(int(host[place : place + 2], 16)) for place in (6, 4, 2, 0)]
    return f"port {'.'.join(numbers)}:{int(port, 16)}"

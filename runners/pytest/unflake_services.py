"""Watches which processes a run talks to that it did not start: what they hold may come from what changed."""

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Set

if TYPE_CHECKING:
    from unflake_usage import Usage

# Listening, in /proc/net/tcp.
LISTENING = "0A"


class Services:
    """Tells of connections to sockets on this machine that no process of the run listens on."""

    def __init__(self, usage: "Usage") -> None:
        self._usage = usage
        self._known: Set[Any] = set()

    def actions(self) -> Dict[str, Callable[..., None]]:
        """The handlers of audit events, by event."""
        return {"socket.connect": self._connected}

    def _connected(self, _socket: Any, address: Any) -> None:
        key = repr(address)
        if key in self._known:
            return
        self._known.add(key)
        if isinstance(address, tuple) and len(address) >= 2:
            if is_here(str(address[0])) and not is_own_port(int(address[1])):
                self._usage.note("talked", f"port {address[1]}")
        elif isinstance(address, (str, bytes)) and not is_own_path(os.fsdecode(address)):
            self._usage.note("talked", os.fsdecode(address).replace("\0", "@"))


def is_here(host: str) -> bool:
    return host in ("localhost", "::1", "0.0.0.0", "::", "") or host.startswith("127.")


def is_own_port(port: int) -> bool:
    wanted = f":{port:04X}"
    inodes = set()
    for table in ("tcp", "tcp6"):
        for fields in rows(f"/proc/net/{table}"):
            if len(fields) > 9 and fields[1].endswith(wanted) and fields[3] == LISTENING:
                inodes.add(fields[9])
    # Nobody listens: then nobody is talked to.
    return not inodes or not inodes.isdisjoint(own_sockets())


def is_own_path(path: str) -> bool:
    name = path.replace("\0", "@")
    inodes = {fields[6] for fields in rows("/proc/net/unix") if len(fields) > 7 and fields[7] == name}
    return not inodes or not inodes.isdisjoint(own_sockets())


def rows(table: str) -> Iterator[Any]:
    try:
        with open(table, encoding="ascii", errors="replace") as file:
            for line in file:
                yield line.split()
    except OSError:
        return


def own_sockets() -> Set[str]:
    """The sockets that this process and its descendants hold, by their inodes."""
    found: Set[str] = set()
    for process in family():
        for link in links_in(f"/proc/{process}/fd"):
            if link.startswith("socket:["):
                found.add(link[len("socket:[") : -1])
    return found


def links_in(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return  # The process has just ended.
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            continue  # It was closed meanwhile, as is the one through which this process listed its own.


def family() -> Set[int]:
    """This process and its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    found = {os.getpid()}
    while True:
        more = {process for process, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more

"""The server under load: many clients send reports while pages are read, and pages over a large history.

    python bench/serve.py load  --unflake target/release/unflake [--clients 50] [--reports 20]
    python bench/serve.py pages --unflake target/release/unflake [--tests 100000] [--runs 10000000]

`load` sends reports of 2,000 tests from 50 clients at once while two readers go through the pages. Afterwards
every acknowledged report must be in the history once. `pages` simulates a history, and reads every page of
the board warm. Both write a line of JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

PAGES = ["/", "/tests", "/tests?query=0042&sort=runs", "/tests/1", "/suite", "/next", "/quarantine"]


class Server:
    """`unflake serve` on a port of its own."""

    def __init__(self, unflake: str, store: Path) -> None:
        command = [unflake, "serve", "--listen", "127.0.0.1:0", "--store", str(store)]
        begun = time.perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+", line)
        if not found:
            sys.exit(f"the server says: {line}")
        self.started = time.perf_counter() - begun
        self.place = urlsplit(found[0]).netloc

    def memory(self) -> float:
        """The most memory that it had, in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else float("nan")

    def processor(self) -> float:
        """The processor time that it used, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def stop(self) -> None:
        """Asks it to end."""
        self.process.terminate()
        if self.process.wait(timeout=120) != 0:
            sys.exit("the server did not end well")


@dataclass
class Load:
    """What clients and readers saw."""

    acknowledged: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    report_times: list[float] = field(default_factory=list)
    page_times: dict[str, list[float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_over: threading.Event = field(default_factory=threading.Event)


def report(client: int, number: int, tests: int) -> bytes:
    """A report of JUnit XML that no other is."""
    day, hour = 1 + number % 27, client % 24
    lines = [f'<testsuite name="s" timestamp="2026-06-{day:02}T{hour:02}:00:00">']
    for test in range(tests):
        body = ""
        if (test * 31 + client * 17 + number) % 200 == 0:
            body = '<failure message="no reply from 127.0.0.1:4711"/>'
        name = f'classname="suite.module_{test % 40}" name="test_{test}"'
        lines.append(f'<testcase {name} time="0.01">{body}</testcase>')
    return "\n".join([*lines, "</testsuite>"]).encode()


def send(place: str, client: int, arguments: argparse.Namespace, load: Load) -> None:
    """One client: its reports one after the other over one connection."""
    connection = http.client.HTTPConnection(place, timeout=120)
    for number in range(arguments.reports):
        path = f"/api/v1/reports?job={client}-{number}&branch=main&environment=e{client % 5}"
        begun = time.perf_counter()
        body = report(client, number, arguments.tests)
        connection.request("POST", path, body, {"content-type": "application/xml"})
        answer = connection.getresponse()
        text = answer.read()
        took = time.perf_counter() - begun
        with load.lock:
            load.report_times.append(took)
            if answer.status == 201:
                load.acknowledged.append(json.loads(text)["digest"])
            else:
                load.trouble.append(f"{answer.status}: {text[:200]!r}")


def read(place: str, load: Load, wait: float) -> None:
    """One reader, who goes through the pages again and again."""
    connection = http.client.HTTPConnection(place, timeout=120)
    while not load.is_over.is_set():
        for path in PAGES:
            begun = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            took = time.perf_counter() - begun
            with load.lock:
                load.page_times.setdefault(path, []).append(took)
                if answer.status not in (200, 404):
                    load.trouble.append(f"{path}: {answer.status}")
            load.is_over.wait(wait)


def quantile(values: list[float], share: float) -> float:
    """The value that is not exceeded by this share of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def run_load(arguments: argparse.Namespace) -> dict[str, object]:
    """Many clients at once."""
    with tempfile.TemporaryDirectory(prefix="unflake-bench-") as folder:
        store = Path(folder) / "history.db"
        server = Server(arguments.unflake, store)
        load = Load()
        readers = [threading.Thread(target=read, args=(server.place, load, 0.05)) for _ in range(2)]
        clients = [
            threading.Thread(target=send, args=(server.place, client, arguments, load))
            for client in range(arguments.clients)
        ]
        begun = time.perf_counter()
        for thread in readers + clients:
            thread.start()
        for thread in clients:
            thread.join()
        elapsed = time.perf_counter() - begun
        load.is_over.set()
        for thread in readers:
            thread.join()
        memory, processor = server.memory(), server.processor()
        server.stop()
        check(store, load, arguments.tests)
        pages = [took for times in load.page_times.values() for took in times]
        return {
            "clients": arguments.clients,
            "reports": len(load.acknowledged),
            "trouble": load.trouble[:5],
            "reports_per_second": len(load.acknowledged) / elapsed,
            "runs_per_second": len(load.acknowledged) * arguments.tests / elapsed,
            "report_p50": quantile(load.report_times, 0.5),
            "report_p99": quantile(load.report_times, 0.99),
            "pages": len(pages),
            "page_p50": quantile(pages, 0.5),
            "page_p99": quantile(pages, 0.99),
            "megabytes": memory,
            "processor_seconds": processor,
        }


def check(store: Path, load: Load, tests: int) -> None:
    """Nothing is lost, and nothing is counted twice."""
    import sqlite3

    connection = sqlite3.connect(store)
    (whole,) = connection.execute("PRAGMA quick_check").fetchone()
    there = {row[0].hex() for row in connection.execute("SELECT digest FROM import")}
    (runs,) = connection.execute("SELECT count(*) FROM run").fetchone()
    lost = set(load.acknowledged) - there
    if whole != "ok" or lost or runs != len(there) * tests or len(there) != len(load.acknowledged):
        sys.exit(f"{whole}: {len(lost)} reports lost, {runs} runs in {len(there)} reports")


def run_pages(arguments: argparse.Namespace) -> dict[str, object]:
    """Pages over a large history."""
    with tempfile.TemporaryDirectory(prefix="unflake-bench-") as folder:
        store = Path(arguments.store or Path(folder) / "history.db")
        if not store.exists():
            size = ["--tests", str(arguments.tests), "--runs", str(arguments.runs)]
            subprocess.run([arguments.unflake, "simulate", "--store", str(store), *size], check=True)
        server = Server(arguments.unflake, store)
        connection = http.client.HTTPConnection(server.place, timeout=300)
        times: dict[str, list[float]] = {}
        releases = ["/suite?release=latest"]
        for _ in range(arguments.rounds):
            for path in PAGES + releases:
                begun = time.perf_counter()
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    sys.exit(f"{path}: {answer.status} {body[:300]!r}")
                times.setdefault(path, []).append(time.perf_counter() - begun)
        memory = server.memory()
        server.stop()
        warm = {path: quantile(took[1:], 0.5) for path, took in times.items()}
        return {
            "tests": arguments.tests,
            "runs": arguments.runs,
            "seconds_to_start": server.started,
            "first": {path: took[0] for path, took in times.items()},
            "warm_p50": warm,
            "warm_worst": max(max(took[1:]) for took in times.values()),
            "megabytes": memory,
        }


def main() -> None:
    """Reads the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("what", choices=["load", "pages"])
    parser.add_argument("--unflake", default="target/release/unflake")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--reports", type=int, default=20)
    parser.add_argument("--tests", type=int)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--store", help="a history that is kept for the next time")
    arguments = parser.parse_args()
    if arguments.tests is None:
        arguments.tests = 2000 if arguments.what == "load" else 100_000
    result = run_load(arguments) if arguments.what == "load" else run_pages(arguments)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

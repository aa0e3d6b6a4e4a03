"""The server under load, after kills, and over a large history.

    cargo build --release
    python3 bench/serve.py load  --write docs/benchmarks.md
    python3 bench/serve.py crash --write docs/benchmarks.md
    python3 bench/serve.py pages --write docs/benchmarks.md [--store FILE]

`load` sends reports of 2,000 tests from 50 clients at once while two readers go through the pages. Afterwards
every acknowledged report must be in the history once. `crash` does the same and kills the server again and
again, at moments drawn by `--seed`: whatever was acknowledged must be there once, as a whole. `pages` simulates
a history, or takes the one in `--store`, and reads every page of the board warm. Each writes a line of JSON, and
with `--write` its section of the page.
"""

# ruff: noqa: E501 - rows of tables are long

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import find_unflake

PAGES = [
    "/",
    "/?since=stable",
    "/tests",
    "/tests?query=0042&sort=runs",
    "/tests?sort=trend&page=9",
    "/tests/1",
    "/suite",
    "/next",
    "/quarantine",
]

# A page over a warm store takes less than this, in seconds.
GOAL = 0.3


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

    def kill(self) -> None:
        """Ends it as a loss of power would, as far as a process can be ended so."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Asks it to end."""
        self.process.terminate()
        if self.process.wait(timeout=120) != 0:
            sys.exit("the server did not end well")


@dataclass
class Load:
    """The observations of clients and readers."""

    acknowledged: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    # Reports whose fate their client does not know.
    cut_off: int = 0
    report_times: list[float] = field(default_factory=list)
    page_times: dict[str, list[float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_going: threading.Event = field(default_factory=threading.Event)
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


def send(place: str, client: int, numbers: range, tests: int, load: Load) -> None:
    """One client: its reports one after the other over one connection, until the server is gone."""
    connection = http.client.HTTPConnection(place, timeout=120)
    for number in numbers:
        path = f"/api/v1/reports?job={client}-{number}&revision=r{number}&branch=main&environment=e{client % 5}"
        body = report(client, number, tests)
        begun = time.perf_counter()
        try:
            connection.request("POST", path, body, {"content-type": "application/xml"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            with load.lock:
                load.cut_off += 1
            return
        took = time.perf_counter() - begun
        with load.lock:
            load.report_times.append(took)
            if answer.status == 201:
                load.acknowledged.append(json.loads(text)["digest"])
                load.is_going.set()
            else:
                load.trouble.append(f"{answer.status}: {text[:200]!r}")


def read(place: str, load: Load, wait: float) -> None:
    """One reader, who goes through the pages again and again."""
    connection = http.client.HTTPConnection(place, timeout=120)
    while not load.is_over.is_set():
        for path in PAGES:
            begun = time.perf_counter()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                return
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


def run_load(arguments: argparse.Namespace) -> dict[str, Any]:
    """Many clients at once."""
    with tempfile.TemporaryDirectory(prefix="unflake-bench-") as folder:
        store = Path(folder) / "history.db"
        server = Server(arguments.unflake, store)
        load = Load()
        readers = [threading.Thread(target=read, args=(server.place, load, 0.05)) for _ in range(2)]
        numbers = range(arguments.reports)
        clients = [
            threading.Thread(target=send, args=(server.place, client, numbers, arguments.tests, load))
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
        wanted = arguments.clients * arguments.reports
        if load.trouble or len(load.acknowledged) != wanted:
            sys.exit(f"{len(load.acknowledged)} of {wanted} reports were taken: {load.trouble[:5]}")
        check(store, load.acknowledged, arguments.tests, unknown=0)
        pages = [took for times in load.page_times.values() for took in times]
        return {
            "clients": arguments.clients,
            "reports": len(load.acknowledged),
            "tests": arguments.tests,
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


def run_crash(arguments: argparse.Namespace) -> dict[str, Any]:
    """Kills at random moments under the same load."""
    chance = random.Random(arguments.seed)
    acknowledged: list[str] = []
    unknown = 0
    with tempfile.TemporaryDirectory(prefix="unflake-bench-") as folder:
        store = Path(folder) / "history.db"
        for kill in range(arguments.kills):
            server = Server(arguments.unflake, store)
            load = Load()
            # No report of an earlier round comes again.
            numbers = range(kill * 10_000, (kill + 1) * 10_000)
            threads = [threading.Thread(target=read, args=(server.place, load, 0.05)) for _ in range(2)]
            threads += [
                threading.Thread(target=send, args=(server.place, client, numbers, arguments.tests, load))
                for client in range(arguments.clients)
            ]
            for thread in threads:
                thread.start()
            if not load.is_going.wait(timeout=120):
                sys.exit(f"no report was taken in two minutes: {load.trouble[:5]}")
            time.sleep(chance.uniform(0.0, arguments.longest))
            server.kill()
            load.is_over.set()
            for thread in threads:
                thread.join()
            if load.trouble:
                sys.exit(f"{load.trouble[:5]}")
            acknowledged += load.acknowledged
            unknown += load.cut_off
            check(store, acknowledged, arguments.tests, unknown)
        # It opens once more, and ends in order.
        Server(arguments.unflake, store).stop()
        stored = check(store, acknowledged, arguments.tests, unknown)
    return {
        "clients": arguments.clients,
        "tests": arguments.tests,
        "kills": arguments.kills,
        "seed": arguments.seed,
        "acknowledged": len(acknowledged),
        "cut_off": unknown,
        "cut_off_but_stored": stored - len(acknowledged),
        "lost": 0,
    }


def check(store: Path, acknowledged: list[str], tests: int, unknown: int) -> int:
    """Nothing is lost, nothing is counted twice, and nothing is there in part. How many reports there are."""
    connection = sqlite3.connect(store)
    (whole,) = connection.execute("PRAGMA quick_check").fetchone()
    there = {row[0].hex() for row in connection.execute("SELECT digest FROM import")}
    (runs,) = connection.execute("SELECT count(*) FROM run").fetchone()
    connection.close()
    lost = set(acknowledged) - there
    more = len(there) - len(acknowledged)
    if whole != "ok" or lost or runs != len(there) * tests or not 0 <= more <= unknown:
        sys.exit(f"{whole}: {len(lost)} reports lost, {runs} runs in {len(there)} reports, {more} not asked for")
    return len(there)


def run_pages(arguments: argparse.Namespace) -> dict[str, Any]:
    """Pages over a large history."""
    with tempfile.TemporaryDirectory(prefix="unflake-bench-") as folder:
        store = Path(arguments.store or Path(folder) / "history.db")
        if not store.exists():
            size = ["--tests", str(arguments.tests), "--runs", str(arguments.runs)]
            subprocess.run([arguments.unflake, "simulate", "--store", str(store), *size], check=True)
        # The first start makes the indexes.
        first_start = Server(arguments.unflake, store)
        first_start.stop()
        server = Server(arguments.unflake, store)
        connection = http.client.HTTPConnection(server.place, timeout=300)
        times: dict[str, list[float]] = {}

        def get(path: str) -> bytes:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f"{path}: {answer.status} {body[:300]!r}")
            return body

        flakiest = json.loads(get("/api/v1/tests"))["tests"][0]["number"]
        day = json.loads(get("/api/v1/triage"))["day"]
        paths = [*PAGES, f"/tests/{flakiest}", f"/?day={int(day[:4]) - 1}{day[4:]}", "/suite?release=latest"]
        for _ in range(arguments.rounds):
            for path in paths:
                begun = time.perf_counter()
                get(path)
                times.setdefault(path, []).append(time.perf_counter() - begun)
        memory = server.memory()
        server.stop()
        return {
            "tests": arguments.tests,
            "runs": arguments.runs,
            "seconds_to_start_first": first_start.started,
            "seconds_to_start": server.started,
            "first": {path: took[0] for path, took in times.items()},
            "warm_p50": {path: quantile(took[1:], 0.5) for path, took in times.items()},
            "warm_worst": {path: max(took[1:]) for path, took in times.items()},
            "megabytes": memory,
        }


def say_load(found: dict[str, Any]) -> list[str]:
    """The result of `load`, for people."""
    return [
        "## The server under load",
        "",
        f"{found['clients']} clients send {found['reports']:,} reports of {found['tests']:,} tests each over the loopback, each as fast as it is",
        "acknowledged, and two readers go through all pages. Clients, readers and server share the cores. Every report was",
        "in the history once afterwards, as a whole.",
        "",
        "| reports a second | runs a second | a report takes, median | 99th percentile | pages read | a page takes, median | 99th percentile | memory | processor |",
        "|-:|-:|-:|-:|-:|-:|-:|-:|-:|",
        f"| {found['reports_per_second']:.1f} | {found['runs_per_second']:,.0f} | {1000 * found['report_p50']:.0f} ms "
        f"| {1000 * found['report_p99']:.0f} ms | {found['pages']:,} | {1000 * found['page_p50']:.0f} ms "
        f"| {1000 * found['page_p99']:.0f} ms | {found['megabytes']:.0f} MB | {found['processor_seconds']:.1f} s |",
    ]


def say_crash(found: dict[str, Any]) -> list[str]:
    """The result of `crash`, for people."""
    return [
        "## The server, killed under load",
        "",
        f"Under the same load of {found['clients']} clients with reports of {found['tests']:,} tests the server was killed (`kill -9`) {found['kills']} times, at",
        f"moments drawn with the seed {found['seed']}. After each kill the store was opened and looked through.",
        "",
        "| reports acknowledged | of them lost | cut off by a kill | of them in the store, as a whole |",
        "|-:|-:|-:|-:|",
        f"| {found['acknowledged']:,} | {found['lost']} | {found['cut_off']:,} | {found['cut_off_but_stored']} |",
    ]


def say_pages(found: dict[str, Any]) -> list[str]:
    """The result of `pages`, for people."""
    rows = [
        f"| `{path}` | {1000 * found['first'][path]:.0f} ms | {1000 * warm:.0f} ms | {1000 * found['warm_worst'][path]:.0f} ms "
        f"| {'yes' if found['warm_worst'][path] < GOAL else '**no**'} |"
        for path, warm in found["warm_p50"].items()
    ]
    return [
        "## The pages of a large history",
        "",
        f"A simulated history of {found['tests']:,} tests and {found['runs']:,} runs. The server starts in {found['seconds_to_start']:.1f} s, the first time, when",
        f"it makes indexes, in {found['seconds_to_start_first']:.1f} s, and takes {found['megabytes']:.0f} MB. *First* is the first request after a start.",
        "",
        "| page | first | warm, median | warm, slowest | below 300 ms |",
        "|-|-:|-:|-:|-|",
        *rows,
    ]


def write_section(page: Path, what: str, lines: list[str]) -> None:
    """Puts a section in its place, or at the end of the page if it has none yet."""
    begin, end = f"<!-- written by bench/serve.py: {what} -->", f"<!-- end of bench/serve.py: {what} -->"
    machine = f"From `bench/serve.py {what}` on a machine of {os.cpu_count()} cores with a load of {os.getloadavg()[1]:.1f}."
    section = "\n".join([begin, *lines[:2], machine, *lines[2:], "", end])
    text = page.read_text()
    if begin in text:
        head, rest = text.split(begin)
        text = head + section + rest.split(end)[1]
    else:
        text = text.rstrip("\n") + "\n\n" + section + "\n"
    page.write_text(text)


PARTS = {"load": (run_load, say_load), "crash": (run_crash, say_crash), "pages": (run_pages, say_pages)}


def main() -> None:
    """Reads the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("what", choices=sorted(PARTS))
    parser.add_argument("--unflake", default=str(find_unflake()), help="the binary [default: cargo's release build]")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--reports", type=int, default=20, help="of each client of load")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", type=int)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--store", help="a history that is kept for the next time")
    parser.add_argument("--write", type=Path, help="also write the section into this page")
    arguments = parser.parse_args()
    if arguments.tests is None:
        arguments.tests = 100_000 if arguments.what == "pages" else 2000
    run, say = PARTS[arguments.what]
    result = run(arguments)
    print(json.dumps(result))
    if arguments.write:
        write_section(arguments.write, arguments.what, say(result))


if __name__ == "__main__":
    main()

"""Measures what `unflake run` costs next to pytest, pytest-rerunfailures and pytest-xdist.

All contenders run on the same generated suites, in turn, in one run of this script. What else the
machine does can only slow a run down, so the ratio is that of the fastest runs of both; the median of
the rounds' ratios and their spread stand beside it, to show how quiet the machine was.

    python3 bench/run.py --write docs/benchmarks.md

The script makes a virtualenv with numpy, pytest and the two plugins in the folder `--work`.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ["numpy", "pytest", "pytest-rerunfailures", "pytest-xdist"]
MEMORY_GOAL = "< 50 MB"
FRESH = ["--fresh", "6", "--immediate", "0", "--end", "0", "--format", "json"]


class Contender(NamedTuple):
    """A command, how people would type it, what its output must say, and its exit code.

    Its figure is the wall time, or with `birth` what a fresh VM of that birth costs by its report.
    """

    command: List[str]
    typed: str
    proof: str
    code: int = 0
    birth: str = ""


class Row(NamedTuple):
    """One comparison: the fastest run of both, the ratio of each round, and the goal."""

    what: str
    pair: Tuple[Contender, Contender]
    fastest: Tuple[float, float]
    ratios: List[float]
    goal: str


# --- the suites ---------------------------------------------------------------------------------

CONFTEST = """\
import pytest
@pytest.fixture(scope="session")
def prices():
    return {"tea": 3, "milk": 2}
"""
QUICK = """\
import pytest
@pytest.fixture(scope="module")
def squares():
    return {number: number * number for number in range(100)}
@pytest.mark.parametrize("number", range(15))
def test_square(squares, number):
    assert squares[number] == number ** 2
@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("name", ["tea", "milk"])
def test_price(prices, monkeypatch, name, count):
    monkeypatch.setitem(prices, name, count)
    assert prices[name] * 2 == count + count
"""
FLAKY = """\
import pathlib
def test_flaky():
    mark = pathlib.Path(__file__).parent / "state" / pathlib.Path(__file__).stem
    if not mark.exists():  # The benchmark empties the folder before each run.
        mark.touch()
        raise ConnectionError("the service is not there yet")
"""
BUSY = """\
import pytest
@pytest.mark.parametrize("start", range(10))
def test_work(start):
    total = start
    for number in range(150_000):
        total = (total * 31 + number) % 1_000_003
    assert total >= 0
"""
NUMPY = """\
import numpy
import pytest
@pytest.mark.parametrize("size", range(1, 11))
def test_sum(size):
    assert numpy.ones(size).sum() == size
"""
BROKEN = "def test_broken():\n    assert numpy.zeros(3).sum() == 1\n"


def write_suite(folder: Path, files: Dict[str, str]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "state").mkdir(parents=True)
    for name, text in {"pytest.ini": "[pytest]\n", "conftest.py": CONFTEST, **files}.items():
        (folder / name).write_text(text)
    return folder


def quick_file(tests: int) -> str:
    """A file of this many quick tests, 25 of them with parameters and fixtures."""
    return QUICK + "".join(f"def test_{n}():\n    assert {n} + 1 == {n + 1}\n" for n in range(tests - 25))


# --- measuring ----------------------------------------------------------------------------------


class Bench:
    """Runs contenders in suites, with one virtualenv and one unflake for all."""

    def __init__(self, unflake: Path, work: Path, rounds: int) -> None:
        self.unflake, self.work, self.rounds = unflake, work, rounds
        self.python, self.output = make_venv(work / "venv"), work / "output.txt"
        unset = ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY")
        self.env = {name: value for name, value in os.environ.items() if name not in unset}
        self.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def our(self, options: List[str], proof: str, code: int = 0, birth: str = "") -> Contender:
        command = [str(self.unflake), "run", "--python", str(self.python), *options]
        return Contender(command, " ".join(["unflake run", *options]), proof, code, birth)

    def pytest(self, plugin: str, options: List[str], proof: str) -> Contender:
        load = ["-p", plugin] if plugin else []
        command = [str(self.python.parent / "pytest"), *load, *options]
        return Contender(command, " ".join(["pytest", *options]), proof)

    def start(self, contender: Contender, suite: Path) -> "subprocess.Popen[bytes]":
        for mark in (suite / "state").iterdir():
            mark.unlink()
        with self.output.open("wb") as out, open(os.devnull, "wb") as err:
            return subprocess.Popen(contender.command, cwd=suite, env=self.env, stdout=out, stderr=err)

    def run(self, contender: Contender, suite: Path) -> float:
        """The figure of one run in seconds. A run that goes wrong ends the benchmark."""
        since = time.perf_counter()
        code, seconds = self.start(contender, suite).wait(), time.perf_counter() - since
        text = self.output.read_text()
        if code != contender.code or not re.search(contender.proof, text):
            sys.exit(f"`{contender.typed}` went wrong (exit code {code}):\n{text[-4000:]}")
        birth = contender.birth
        return float(json.loads(text)["costs"][birth]["seconds_each"]) if birth else seconds

    def compare(self, what: str, suite: Path, one: Contender, other: Contender, goal: str) -> Row:
        """Runs both in turn, the other one first in every other round."""
        figures: Tuple[List[float], List[float]] = ([], [])
        for number in range(self.rounds + 1):
            for side in (0, 1) if number % 2 else (1, 0):
                figure = self.run((one, other)[side], suite)
                if number:  # The first round only warms the caches.
                    figures[side].append(figure)
            print(".", end="", file=sys.stderr, flush=True)
        print(f" {what}", file=sys.stderr)
        ratios = [mine / its for mine, its in zip(*figures)]
        return Row(what, (one, other), (min(figures[0]), min(figures[1])), ratios, goal)

    def peak_memory(self, contender: Contender, suite: Path) -> float:
        """The largest resident memory in MB of the process itself, without what it starts."""
        process, peak = self.start(contender, suite), 0.0
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+) kB", status)
            peak = int(found.group(1)) * 1024 / 1e6 if found else peak  # It never shrinks.
            time.sleep(0.005)
        process.wait()
        return peak


def make_venv(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def measure(bench: Bench) -> Tuple[List[Row], float]:
    suites = bench.work / "suites"
    suite = write_suite(suites / "passing", {f"test_{n:02}.py": quick_file(50) for n in range(40)})
    ours, theirs = bench.our([], "2000 passed"), bench.pytest("", ["-q"], "2000 passed")
    rows = [bench.compare("2,000 quick tests that pass", suite, ours, theirs, "≤ 1.05")]
    memory = bench.peak_memory(ours, suite)

    suite = write_suite(suites / "flaky", {f"test_{n}.py": quick_file(49) + FLAKY for n in range(10)})
    options, proof = ["-q", "--reruns", "3"], "500 passed, 10 rerun"
    ours, theirs = bench.our([], "10 flaky"), bench.pytest("pytest_rerunfailures", options, proof)
    rows.append(bench.compare("500 tests, 10 of them flaky", suite, ours, theirs, "none"))

    execute = bench.our(["--fresh-by", "exec", *FRESH], '"birth": "exec"', 1, "exec")
    fork = bench.our(["--fresh-by", "fork", *FRESH], '"birth": "fork"', 1, "fork")
    for count in (1, 30):
        files = {f"test_{n:02}.py": NUMPY for n in range(count)}
        suite = write_suite(suites / f"numpy-{count}", {**files, "test_00.py": NUMPY + BROKEN})
        what = f"one fresh VM by exec and by fork, {count * 10 + 1} tests with numpy"
        rows.append(bench.compare(what, suite, execute, fork, "≥ 10"))

    suite = write_suite(suites / "busy", {f"test_{n:02}.py": BUSY for n in range(20)})
    options, proof = ["-q", "-n", "2", "--dist", "loadfile"], "200 passed"
    ours, theirs = bench.our(["--jobs", "2"], proof), bench.pytest("xdist.plugin", options, proof)
    rows.append(bench.compare("20 files of CPU work, two workers", suite, ours, theirs, "none"))
    return rows, memory


# --- telling ------------------------------------------------------------------------------------


def write_table(rows: List[Row], memory: float) -> str:
    lines = ["| Measured | Contenders | Fastest | Ratio | Rounds | Goal | Met |", "|-|-|-:|-:|-:|-:|-|"]
    for row in rows:
        ratio = row.fastest[0] / row.fastest[1]
        typed = "<br>".join(f"`{contender.typed}`" for contender in row.pair)
        times = "<br>".join(f"{seconds * 1000:,.0f} ms" for seconds in row.fastest)
        middle, low, high = statistics.median(row.ratios), min(row.ratios), max(row.ratios)
        spread = f"{middle:.2f} ({low:.2f}–{high:.2f})"
        end = f"{ratio:.2f} | {spread} | {row.goal} | {is_met(row.goal, ratio)}"
        lines.append(f"| {row.what} | {typed} | {times} | {end} |")
    end = f"{memory:.1f} MB | | | {MEMORY_GOAL} | {is_met(MEMORY_GOAL, memory)}"
    lines.insert(3, f"| … peak memory of unflake itself | `unflake run` | {end} |")
    return "\n".join(lines)


def is_met(goal: str, value: float) -> str:
    """Whether a goal like `≤ 1.05` is met, in words; nothing without a goal."""
    if goal == "none":
        return ""
    sign, limit = goal[0], float(goal.split()[1])
    met = {"≤": value <= limit, "<": value < limit, "≥": value >= limit}
    return "yes" if met[sign] else "**no**"


def ask_versions(python: Path) -> str:
    frozen = subprocess.check_output([str(python), "-m", "pip", "freeze"], text=True)
    known = [line.replace("==", " ") for line in frozen.split() if line.split("==")[0] in PACKAGES]
    return ", ".join([f"Python {platform.python_version()}", *known])


def write_page(bench: Bench, table: str) -> str:
    cores = os.cpu_count() or 1
    machine = {1: "one core", 2: "two cores"}.get(cores, f"{cores} cores")
    return f"""\
# Benchmarks

`bench/run.py` wrote this page, from one run of

    cargo build --release
    python3 bench/run.py --rounds {bench.rounds} --write docs/benchmarks.md

Machine: {machine}, Linux. {ask_versions(bench.python)}.

Each row compares two contenders on the same generated suite. They run in turn, {bench.rounds} rounds
after one to warm up. The ratio is that of the fastest runs, the first contender by the second; beside
it stand the median of the rounds' ratios, the smallest and the largest. Times are the wall time of the
whole command. For a fresh VM
they are what one costs by unflake's own report: from the wish for it to the result of its test. No
pytest plugin is loaded but the one that a contender needs.

{table}
"""


def find_sections(page: str) -> str:
    """The sections of the page that other scripts wrote; they stay as they are."""
    marked = re.finditer(r"<!-- written by (\S+) -->.*?<!-- end of \1 -->\n", page, re.DOTALL)
    return "".join(f"\n{section.group()}" for section in marked)


def find_unflake() -> Path:
    target = os.environ.get("CARGO_TARGET_DIR")
    if target is None:
        command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
        target = json.loads(subprocess.check_output(command, cwd=REPOSITORY))["target_directory"]
    return Path(str(target)) / "release" / "unflake"


def main() -> None:
    cache = Path.home() / ".cache/unflake/bench"
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each comparison [default: 9]")
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    args = parser.parse_args()
    unflake = (args.unflake or find_unflake()).resolve()
    if not unflake.is_file():
        parser.error(f"there is no {unflake}; run `cargo build --release` or give --unflake PATH")
    bench = Bench(unflake, args.work.resolve(), args.rounds)
    table = write_table(*measure(bench))
    print(table)
    if args.write:
        args.write.parent.mkdir(parents=True, exist_ok=True)
        others = find_sections(args.write.read_text()) if args.write.exists() else ""
        args.write.write_text(write_page(bench, table) + others)


if __name__ == "__main__":
    main()

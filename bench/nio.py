"""Measures what `unflake nio` costs: next to pytest-repeat, mode against mode, and with two VMs at once.

    cargo build --release
    python3 bench/nio.py --write docs/benchmarks.md

It replaces only its own section of the page. All contenders of a row run in turn in each round, so that a
slow moment of the machine meets all of them. It makes a virtualenv and suites in the folder `--work`, and
downloads source distributions there.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import List, NamedTuple, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import BUSY, NUMPY, find_unflake, is_met, quick_file, write_suite

MARKS = ("<!-- written by bench/nio.py -->", "<!-- end of bench/nio.py -->")
PACKAGES = ["numpy", "pytest==8.3.5", "pytest-repeat==0.9.4", "click==8.2.1", "boltons==25.0.0"]

SECTION = """\
## Tests run twice

`bench/nio.py` wrote this section, from one run of

    python3 bench/nio.py --rounds {rounds} {real} --write docs/benchmarks.md

Each row compares two commands on the same suite: the wall time of the fastest of {rounds} rounds, the ratio
of these two, the median of the rounds' ratios with the smallest and largest, and the ratio of the processor
time of both with all that they start, which other work on the machine disturbs less. {machine}

{table}

{why}
"""

WHY = """\
What a fresh VM costs in `method` mode is the fork. A copy of a VM that has collected copies each page that
it writes to, and a Python process writes to a page whenever it counts a reference: {faults:,.0f} pages for a
quick test that runs twice, nearly all of them in the first run. On this machine, itself a virtual one, a
copied page takes {page:.1f} µs and a fork of a small process {fork:.1f} ms; together that is {share:.0f} % of
the processor time of a copy. The second of two runs in one VM costs half a millisecond. So for tests that do
nothing, a fresh VM each cannot be had for the price of a second run; the longer tests run, the less it
matters.
"""


class Contender(NamedTuple):
    """Commands that together are one measurement, how people would type them, and what they must say."""

    commands: List[List[str]]
    typed: str
    proof: str


class Figure(NamedTuple):
    """Seconds of one measurement: on the wall, and of all processors."""

    wall: float
    processor: float


class Row(NamedTuple):
    """One comparison: both contenders, the figures of each round, and the goal."""

    what: str
    pair: Tuple[Contender, Contender]
    figures: Tuple[List[Figure], List[Figure]]
    goal: str

    def fastest(self) -> Tuple[float, float]:
        one, other = ([figure.wall for figure in side] for side in self.figures)
        return min(one), min(other)

    def ratio(self) -> float:
        one, other = self.fastest()
        return one / other


class Bench:
    """Runs contenders in suites, with one virtualenv and one unflake for all."""

    def __init__(self, unflake: Path, work: Path, rounds: int) -> None:
        self.unflake, self.work, self.rounds = unflake, work, rounds
        self.python, self.output = make_venv(work / "venv-bench"), work / "output.txt"
        unset = ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY")
        self.env = {name: value for name, value in os.environ.items() if name not in unset}
        self.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def nio(self, options: str, paths: List[str]) -> Contender:
        command = [str(self.unflake), "nio", "--python", str(self.python), *options.split(), "--", *paths]
        return Contender([command], f"unflake nio {options}", r"tests in [\d.]+")

    def repeat(self, paths: List[str]) -> Contender:
        command = [str(self.python.parent / "pytest"), "-q", "-p", "pytest_repeat", "--count", "2", *paths]
        return Contender([command], "pytest --count 2", "passed")

    def each_alone(self, suite: Path) -> Contender:
        """A new interpreter for each test."""
        pytest = str(self.python.parent / "pytest")
        listed = subprocess.check_output([pytest, "--collect-only", "-q"], cwd=suite, env=self.env, text=True)
        tests = [line for line in listed.splitlines() if "::" in line]
        # Each runs once only: pytest-repeat cannot select one test of several parameters.
        return Contender([[pytest, "-q", test] for test in tests], "pytest FILE::TEST, for each", "passed")

    def run(self, contender: Contender, suite: Path) -> Figure:
        """One measurement. A run that goes wrong ends the benchmark; a finding is not wrong."""
        before, since = processor_time(), time.perf_counter()
        for command in contender.commands:
            with self.output.open("wb") as out:
                code = subprocess.run(command, cwd=suite, env=self.env, stdout=out, stderr=out).returncode
            text = self.output.read_text(errors="replace")
            if code not in (0, 1) or not re.search(contender.proof, text):
                sys.exit(f"`{contender.typed}` went wrong (exit code {code}):\n{text[-4000:]}")
        return Figure(time.perf_counter() - since, processor_time() - before)

    def compare(
        self, what: str, suite: Path, one: Contender, other: Contender, goal: str, rounds: int = 0
    ) -> Row:
        """Runs both in turn, the other one first in every other round."""
        figures: Tuple[List[Figure], List[Figure]] = ([], [])
        for number in range((rounds or self.rounds) + 1):
            for side in (0, 1) if number % 2 else (1, 0):
                if number == 0 and len((one, other)[side].commands) > 1:
                    continue  # It needs no warming: each of its commands starts cold.
                figure = self.run((one, other)[side], suite)
                if number:  # The first round only warms the caches.
                    figures[side].append(figure)
            print(".", end="", file=sys.stderr, flush=True)
        row = Row(what, (one, other), figures, goal)
        print(f" {what}: {row.ratio():.2f}", file=sys.stderr)
        return row


def processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_venv(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def fetch_tests(bench: Bench, name: str) -> Path:
    """The tests of an installed package, from its source distribution."""
    folder = bench.work / "suites" / name
    version = next(one for one in PACKAGES if one.startswith(name))
    if not folder.exists():
        download = bench.work / "download" / name
        pip = [str(bench.python), "-m", "pip", "--quiet", "download", "--no-deps", "--no-binary", name]
        subprocess.run([*pip, "-d", str(download), version], check=True)
        unpacked = bench.work / "unpacked" / name
        shutil.unpack_archive(str(next(download.iterdir())), str(unpacked))
        tree = next(unpacked.iterdir())
        folder.mkdir(parents=True)
        (tree / "tests").rename(folder / "tests")
        (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def measure(bench: Bench, real: List[str]) -> List[Row]:
    suites = bench.work / "suites"
    quick = write_suite(suites / "quick", {f"test_{n:02}.py": quick_file(50) for n in range(12)})
    named: List[Tuple[str, Path, List[str]]] = [("600 quick tests", quick, [])]
    named += [(name, fetch_tests(bench, name), ["tests"]) for name in real]
    rows = []
    for name, suite, paths in named:
        whole = bench.nio("--mode suite", paths)
        rows.append(bench.compare(name, suite, whole, bench.repeat(paths), "≤ 1.00"))
        rows.append(bench.compare(name, suite, bench.nio("--mode method", paths), whole, "≤ 2.00"))
        rows.append(bench.compare(name, suite, bench.nio("--mode method --jobs 2", paths), whole, "≤ 2.00"))
    busy = write_suite(suites / "busy", {f"test_{n:02}.py": BUSY for n in range(20)})
    for mode in ("method", "class"):
        one, both = bench.nio(f"--mode {mode}", []), bench.nio(f"--mode {mode} --jobs 2", [])
        rows.append(bench.compare("20 files of CPU work", busy, one, both, "≥ 1.70"))
    numpy = write_suite(suites / "numpy", {f"test_{n:02}.py": NUMPY for n in range(15)})
    alone, method = bench.each_alone(numpy), bench.nio("--mode method", [])
    rows.append(bench.compare("150 tests with numpy", numpy, alone, method, "≥ 20.00", rounds=1))
    return rows


# --- what a copy costs --------------------------------------------------------------------------

COPIES = """
import os, time
def each(child, count=200):
    since = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if not pid:
            child()
            os._exit(0)
        os.waitpid(pid, 0)
    return (time.perf_counter() - since) / count
pages = bytearray(2000 * 4096)
def write():
    for place in range(0, len(pages), 4096):
        pages[place] = 1
write()
fork = min(each(lambda: None) for _ in range(3))
page = (min(each(write) for _ in range(3)) - fork) / 2000
print(fork, page)
"""


def explain(bench: Bench, rows: List[Row]) -> str:
    """The parts of the time of a copy, in figures of this machine."""
    fork, page = map(float, subprocess.check_output([str(bench.python), "-c", COPIES], text=True).split())
    suite, method = rows[0].pair[0], rows[1].pair[0]
    folder = bench.work / "suites/quick"
    counts = []
    for contender in (method, suite):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        bench.run(contender, folder)
        counts.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
    faults = (counts[0] - counts[1]) / 600
    spent = [min(figure.processor for figure in side) for side in rows[1].figures]
    share = (fork + faults * page) / ((spent[0] - spent[1]) / 600) * 100
    return WHY.format(faults=faults, page=page * 1e6, fork=fork * 1e3, share=min(share, 100))


# --- telling ------------------------------------------------------------------------------------


def write_table(rows: List[Row]) -> str:
    lines = ["| Suite | Contenders | Fastest | Ratio | Rounds | Processor | Goal | Met |"]
    lines.append("|-|-|-:|-:|-:|-:|-:|-|")
    for row in rows:
        typed = "<br>".join(f"`{contender.typed}`" for contender in row.pair)
        times = "<br>".join(f"{seconds * 1000:,.0f} ms" for seconds in row.fastest())
        each = [one.wall / other.wall for one, other in zip(*row.figures)]
        spread = f"{statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f})"
        spent = [min(figure.processor for figure in side) for side in row.figures]
        met = is_met(row.goal, row.ratio())
        end = f"{row.ratio():.2f} | {spread} | {spent[0] / spent[1]:.2f} | {row.goal} | {met}"
        lines.append(f"| {row.what} | {typed} | {times} | {end} |")
    return "\n".join(lines)


def replace_section(page: str, section: str) -> str:
    """The page with this script's section in place of the one before, or at its end."""
    marked = f"{MARKS[0]}\n\n{section}\n{MARKS[1]}\n"
    known = re.compile(f"{re.escape(MARKS[0])}.*{re.escape(MARKS[1])}\n", re.DOTALL)
    if known.search(page):
        return known.sub(lambda _: marked, page)
    return f"{page.rstrip()}\n\n{marked}"


def main() -> None:
    cache = Path.home() / ".cache/unflake/nio-bench"
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison [default: 5]")
    parser.add_argument("--real", nargs="*", default=["click", "boltons"], help="the real suites")
    parser.add_argument("--write", type=Path, help="also write the section into this page")
    args = parser.parse_args()
    unflake = (args.unflake or find_unflake()).resolve()
    if not unflake.is_file():
        parser.error(f"there is no {unflake}; run `cargo build --release` or give --unflake PATH")
    args.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(unflake, args.work.resolve(), args.rounds)
    rows = measure(bench, args.real)
    load = os.getloadavg()[2]
    machine = f"Machine: {os.cpu_count()} cores, Linux, with a load of {load:.1f} over the last 15 minutes."
    real = " ".join(["--real", *args.real])
    section = SECTION.format(
        rounds=args.rounds, real=real, machine=machine, table=write_table(rows), why=explain(bench, rows)
    )
    print(section)
    if args.write:
        page = args.write.read_text() if args.write.exists() else "# Benchmarks\n"
        args.write.write_text(replace_section(page, section.rstrip() + "\n"))


if __name__ == "__main__":
    main()

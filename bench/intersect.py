"""Measures what it costs to watch a fresh run of one test, next to what coverage.py costs.

INTERSECT watches the last fresh run of a test that failed each time. For tests spread over real suites
this script times such a run, from the start of a new interpreter to the message that the test ran, with
and without the watcher. In the same rounds it times `pytest` for that test alone, plain and under
coverage.py. The ratio of a test is that of its fastest runs; a suite's is the median over its tests.

    python3 bench/intersect.py --write docs/benchmarks.md

It replaces only its own section of the page. It plays the driver's part of `docs/protocol.md` itself, so it
needs no build; it downloads source distributions and makes virtualenvs in the folder `--work`. It exits with
1 if a suite misses the goal or cannot be measured.
"""

import argparse
import contextlib
import json
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

REPOSITORY = Path(__file__).resolve().parent.parent
MARKS = ("<!-- written by bench/intersect.py -->", "<!-- end of bench/intersect.py -->")
GOAL, LIMIT = 1.3, 60.0  # a ratio; seconds for one run
BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); import unflake_pytest; sys.exit(unflake_pytest.main())"
)

# Name, version, Python, pytest, what else its tests need, paths, options for pytest.
SUITES = """
boltons     | 25.0.0      | 3.11 | 8.3.5 |                        | tests |
click       | 8.2.1       | 3.11 | 8.3.5 |                        | tests |
h11         | 0.16.0      | 3.11 | 7.4.4 |                        | h11   |
jinja2      | 3.1.6       | 3.11 | 9.0.2 | trio                   | tests |
marshmallow | 3.26.1      | 3.11 | 9.0.2 | simplejson pytz        | tests |
tenacity    | 9.0.0       | 3.11 | 9.0.2 | tornado typeguard      | tests |
jinja2      | 3.1.6       | 3.12 | 9.0.2 | trio                   | tests |
click       | 8.2.1       | 3.13 | 8.3.5 |                        | tests |
packaging   | 24.2        | 3.8  | 8.3.5 | pretend                | tests |
click       | 8.1.8       | 3.8  | 8.3.5 |                        | tests |
h11         | 0.16.0      | 3.8  | 7.4.4 |                        | h11   |
"""

SECTION = """\
## Watching a run

`bench/intersect.py` wrote this section, from one run of

    python3 bench/intersect.py --rounds {rounds} --write docs/benchmarks.md

INTERSECT watches one fresh run of each test that failed every time. "Fresh run" is the time from the start
of a new interpreter to the message that its one test ran, without the watcher; "watched" is the ratio with
it. Beside it stands a peer: `pytest FILE::TEST` as a whole command, and the ratio of the same under
`coverage run`, lines only, with its default core ({coverage}).

Each suite is a real project's, installed in editable mode, with {tests} tests spread over it. The four
contenders of a test run in turn, {rounds} rounds after one to warm up. A test's ratio is that of its fastest
runs; the table gives the median over the tests, and the smallest and largest. The goal is a median of at
most {goal}.

{table}

From Python 3.12 on the interpreter tells of each function once and then never again. Before, it calls the
watcher for each call from the project's first module on, whoever makes it, so what pytest itself does in
that time is what costs: where it collects thousands of parameters to select one test, as in packaging,
there are more than a million such calls.
"""


class Trouble(Exception):
    """What keeps a suite from being measured."""


class Suite(NamedTuple):
    name: str
    version: str
    python: str
    pytest: str
    requires: str
    paths: str
    options: str


class Row(NamedTuple):
    """For each test the fastest seconds of the four contenders."""

    suite: Suite
    fastest: List[Tuple[float, ...]]
    coverage: str


class Bench:
    """One suite's sources, environment and runner under the work folder."""

    def __init__(self, suite: Suite, work: Path) -> None:
        self.suite = suite
        self.home = work / f"{suite.name}-{suite.version}-py{suite.python}"
        self.python, self.tree = self.home / "venv/bin/python", self.home / "tree"
        self.runner = self.home / "runner"
        dropped = ("PYTEST_", "PYTHON", "COVERAGE_", "UNFLAKE_")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.env.update(PYTHONHASHSEED="0", VIRTUAL_ENV=str(self.home / "venv"))
        self.env["PATH"] = f"{self.python.parent}{os.pathsep}{self.env['PATH']}"

    def prepare(self) -> None:
        """Downloads, unpacks and installs, unless that was done; the runner is always the current one."""
        suite, stamp = self.suite, self.home / "prepared.json"
        wishes = json.dumps(suite)
        if not (stamp.exists() and stamp.read_text() == wishes):
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
            pythons = [*map(str, pyenv.glob(f"{suite.python}.*/bin/python")), f"python{suite.python}"]
            self.call([pythons[0], "-m", "venv", "venv"])
            pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
            source = ["--no-deps", "--no-binary", suite.name, f"{suite.name}=={suite.version}"]
            self.call([*pip, "download", "-d", "download", *source])
            shutil.unpack_archive(str(next((self.home / "download").iterdir())), str(self.home / "sdist"))
            next((self.home / "sdist").iterdir()).rename(self.tree)
            more = [f"pytest=={suite.pytest}", "coverage", *suite.requires.split()]
            self.call([*pip, "install", "-e", str(self.tree), *more])
            stamp.write_text(wishes)
        shutil.rmtree(self.runner, ignore_errors=True)
        shutil.copytree(REPOSITORY / "runners/pytest", self.runner)
        (self.home / "coveragerc").write_text("")  # The project's own settings may ask for more than lines.

    def call(self, command: List[str]) -> None:
        streams: Dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, cwd=self.home, env=self.env, **streams)
        if done.returncode:
            output = done.stdout.decode(errors="replace")[-2000:]
            raise Trouble(f"`{' '.join(command)}` failed:\n{output}")

    def pick_tests(self, count: int) -> List[Dict[str, Any]]:
        """Tests that pass alone, evenly spread over the suite, each with the arguments that select it."""
        suite = self.suite
        with Vm(self) as vm:
            listed = vm.collect([*suite.options.split(), *suite.paths.split()], False)
        if listed["blocked"] or not listed["tests"]:
            raise Trouble(f"its suite cannot be collected: {listed['errors']}")
        root, config = listed["root"], listed["config_file"]
        settings = [*suite.options.split(), *(["-c", config] if config else []), f"--rootdir={root}"]
        tests = [{**test, "args": [*settings, f"{root}/{test['test']}"]} for test in listed["tests"]]
        step = len(tests) / count
        picked: List[Dict[str, Any]] = []
        for place in range(count):
            for test in tests[int(place * step) : int((place + 1) * step)]:
                # Those that ask to be skipped run nothing.
                with Vm(self) as vm:
                    outcome = vm.run_alone(test, False)[1]
                if outcome == "passed":
                    picked.append(test)
                    break
        if not picked:
            raise Trouble("no test of it passes alone")
        return picked

    def time_run(self, test: Dict[str, Any], watch: bool) -> float:
        with Vm(self) as vm:
            seconds, outcome = vm.run_alone(test, watch)
        if outcome != "passed":
            raise Trouble(f"{test['test']} {outcome} (watch: {watch})")
        return seconds

    def time_command(self, test: Dict[str, Any], measured: bool) -> float:
        data = [f"--data-file={self.home / 'coverage.data'}", f"--rcfile={self.home / 'coveragerc'}"]
        words = ["-m", "coverage", "run", *data, "-m", "pytest"] if measured else ["-m", "pytest"]
        with (self.home / "output.txt").open("wb") as out:
            since = time.perf_counter()
            command = [str(self.python), *words, "-p", "no:cacheprovider", *test["args"]]
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            code = subprocess.run(command, cwd=self.tree, env=self.env, **streams).returncode
            seconds = time.perf_counter() - since
        if code:
            output = (self.home / "output.txt").read_text(errors="replace")[-2000:]
            raise Trouble(f"pytest ended {test['test']} with {code}:\n{output}")
        return seconds

    def measure(self, rounds: int, count: int) -> Row:
        self.prepare()
        version = subprocess.check_output([str(self.python), "-m", "coverage", "--version"], text=True)
        rows = []
        for test in self.pick_tests(count):
            figures: List[List[float]] = [[], [], [], []]
            for number in range(rounds + 1):
                # Each pair stays together, and whoever goes first changes.
                for side in (0, 1, 2, 3) if number % 2 else (3, 2, 1, 0):
                    action = self.time_run if side < 2 else self.time_command
                    seconds = action(test, side % 2 == 1)
                    if number:  # The first round only warms the caches.
                        figures[side].append(seconds)
            rows.append(tuple(min(times) for times in figures))
            print(".", end="", file=sys.stderr, flush=True)
        row = Row(self.suite, rows, version.split()[2])
        watched, covered = ratios(row, 0), ratios(row, 2)
        middles = f"{statistics.median(watched):.2f} {statistics.median(covered):.2f}"
        print(f" {self.suite.name} {self.suite.python} {middles}", file=sys.stderr)
        return row


class Vm:
    """A new interpreter with the runner in it, and this script as its driver."""

    def __init__(self, bench: Bench) -> None:
        self._folder = tempfile.mkdtemp(prefix="unflake-bench-")
        self._pipes = []
        for name in ("messages", "commands"):
            path = os.path.join(self._folder, f"0.{name}")
            os.mkfifo(path)
            self._pipes.append(os.open(path, os.O_RDWR))  # Opening waits for nobody.
        self._heard = b""
        env = {**bench.env, "UNFLAKE_CHANNEL": self._folder, "UNFLAKE_VM": "0"}
        command = [str(bench.python), "-c", BOOTSTRAP, str(bench.runner)]
        self._output = Path(self._folder, "output.txt")
        with self._output.open("wb") as out:
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            self._since = time.perf_counter()
            self._process = subprocess.Popen(
                command, cwd=bench.tree, env=env, start_new_session=True, **streams
            )

    def __enter__(self) -> "Vm":
        return self

    def __exit__(self, *_error: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in self._pipes:
            os.close(pipe)
        shutil.rmtree(self._folder)

    def collect(self, args: List[str], watch: bool) -> Dict[str, Any]:
        self.hear("hello")
        self.tell(do="start", args=args, guest=True, watch=watch)
        self.hear("parsed")
        self.tell(do="collect", worker=None)
        return self.hear("tests")

    def run_alone(self, test: Dict[str, Any], watch: bool) -> Tuple[float, str]:
        """Collects and runs one test; returns the seconds since the process was started, and the outcome."""
        self.collect(test["args"], watch)
        self.tell(do="rerun", test=test["test"], copy=test["copy"], next=None, keep=False)
        attempts = self.hear("ran")["attempts"]
        return time.perf_counter() - self._since, attempts[-1]["outcome"]

    def facts(self) -> str:
        """The output of the watcher so far."""
        return Path(self._folder, "0.usage").read_text()

    def tell(self, **command: Any) -> None:
        os.write(self._pipes[1], json.dumps(command).encode() + b"\n")

    def hear(self, expected: str) -> Dict[str, Any]:
        deadline = time.monotonic() + LIMIT
        while b"\n" not in self._heard:
            if select.select([self._pipes[0]], [], [], 1.0)[0]:
                self._heard += os.read(self._pipes[0], 1 << 16)
            elif self._process.poll() is not None or time.monotonic() > deadline:
                output = self._output.read_text(errors="replace")[-2000:]
                raise Trouble(f"the runner did not say `{expected}`:\n{output}")
        line, _, self._heard = self._heard.partition(b"\n")
        message: Dict[str, Any] = json.loads(line)
        if message["say"] != expected:
            raise Trouble(f"the runner said {line.decode()[:500]} in place of `{expected}`")
        return message


# --- telling ------------------------------------------------------------------------------------


def ratios(row: Row, first: int) -> List[float]:
    return [times[first + 1] / times[first] for times in row.fastest]


def write_table(rows: List[Row]) -> str:
    lines = ["| Suite | Python | Tests | Fresh run | Watched | Goal met | `pytest` | coverage.py |"]
    lines.append("|-|-|-:|-:|-:|-|-:|-:|")
    for row in rows:
        suite, cells = row.suite, []
        for first in (0, 2):
            alone = statistics.median(times[first] for times in row.fastest) * 1000
            each = ratios(row, first)
            cells.append(f"{alone:,.0f} ms | {statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f})")
        met = "yes" if is_met(row) else "**no**"
        name = f"{suite.name} {suite.version} | {suite.python} | {len(row.fastest)}"
        lines.append(f"| {name} | {cells[0]} | {met} | {cells[1]} |")
    return "\n".join(lines)


def write_section(rows: List[Row], rounds: int, tests: int) -> str:
    versions: Dict[str, List[str]] = {}
    for row in rows:
        versions.setdefault(row.coverage, []).append(row.suite.python)
    known = [f"{version} for Python {', '.join(dict.fromkeys(of))}" for version, of in versions.items()]
    table = write_table(rows)
    return SECTION.format(rounds=rounds, tests=tests, goal=GOAL, coverage="; ".join(known), table=table)


def is_met(row: Row) -> bool:
    return statistics.median(ratios(row, 0)) <= GOAL


def replace_section(page: str, section: str) -> str:
    """The page with this script's section in place of the one before, or at its end."""
    marked = f"{MARKS[0]}\n\n{section}\n{MARKS[1]}\n"
    pattern = re.escape(MARKS[0]) + ".*" + re.escape(MARKS[1]) + "\n"
    if re.search(pattern, page, re.DOTALL):
        return re.sub(pattern, lambda _: marked, page, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{marked}" if page.strip() else marked


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    cache = Path.home() / ".cache/unflake/intersect"
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each test [default: 5]")
    parser.add_argument("--tests", type=int, default=10, help="tests of each suite [default: 10]")
    parser.add_argument("--only", action="append", help="only NAME or NAME@PYTHON; may be repeated")
    parser.add_argument("--write", type=Path, help="also write the section into this page")
    options = parser.parse_args()
    rows, troubles = [], []  # type: List[Row], List[str]
    for line in SUITES.strip().splitlines():
        suite = Suite(*(part.strip() for part in line.split("|")))
        names = {suite.name, f"{suite.name}@{suite.python}"}
        if options.only and not names.intersection(options.only):
            continue
        try:
            rows.append(Bench(suite, options.work.resolve()).measure(options.rounds, options.tests))
        except Trouble as trouble:
            troubles.append(f"{suite.name} on Python {suite.python} could not be measured: {trouble}")
            print(troubles[-1], file=sys.stderr)
    section = write_section(rows, options.rounds, options.tests)
    section += "".join(f"\n{trouble.splitlines()[0]}\n" for trouble in troubles)
    print(section)
    if options.write:
        page = options.write.read_text() if options.write.exists() else ""
        options.write.write_text(replace_section(page, section))
    return 1 if troubles or not all(map(is_met, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())

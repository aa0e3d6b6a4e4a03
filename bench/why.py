"""Measures what tracing costs and whether tests notice it.

For each real suite below it downloads the source distribution, installs it in editable mode, and runs the
project's own tests in turn by plain `pytest` and by `pytest` with each test recorded as `unflake why` records
it. It compares every outcome, the processor time, the wall time and the memory. It also times a loop of
calls of an empty function, plain, rewritten but not recorded, and recorded.

    python3 bench/why.py --write

replaces its sections in `docs/benchmarks.md` and `docs/evaluation/why.md`. It needs no build and the standard
library only; sources and environments go to the folder `--work`. It exits with 1 if a test ends otherwise
under tracing, or a goal is missed. A test whose outcome differs between plain runs differs by itself: it is
listed, and not counted.
"""

# ruff: noqa: E501 - the table of projects has long lines

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

REPOSITORY = Path(__file__).resolve().parent.parent
RUNNER = REPOSITORY / "runners/pytest"
PAGES = {"cost": "docs/benchmarks.md", "same": "docs/evaluation/why.md"}
LOOP_GOAL, SUITE_GOAL = 12.0, 3.0
RUN_LIMIT, PLAIN_RUNS, SHOWN = 900, 4, 15
LOOP_SIZES = (1_000, 1_000_000)

# Name, version, Python, pytest, what else its tests need, arguments for pytest.
SUITES = """
boltons        | 25.0.0 | 3.11 | 8.3.5 | | tests
click          | 8.2.1  | 3.13 | 8.3.5 | | tests --deselect=tests/test_utils.py::test_echo_via_pager
h11            | 0.16.0 | 3.12 | 7.4.4 | | h11
jinja2         | 3.1.6  | 3.12 | 9.0.2 | trio | tests
marshmallow    | 3.26.1 | 3.11 | 9.0.2 | simplejson pytz | tests --deselect=tests/test_deserialization.py::TestFieldDeserialization::test_invalid_datetime_deserialization
tenacity       | 9.0.0  | 3.12 | 9.0.2 | tornado typeguard | tests
packaging      | 24.2   | 3.8  | 8.3.5 | pretend | tests/test_tags.py tests/test_metadata.py
attrs          | 25.3.0 | 3.12 | 9.0.2 | hypothesis cloudpickle | tests --hypothesis-seed=1
more-itertools | 10.7.0 | 3.11 | 9.0.2 | | tests/test_recipes.py
freezegun      | 1.5.5  | 3.12 | 7.4.4 | | tests
"""

# The plugin that pytest loads in both kinds of runs; with a folder in WHY_FOLDER it records each test.
PLUGIN = '''
import json, os, sys
import pytest
TARGET, FOLDER, TRACE = (os.environ.pop(name) for name in ("WHY_RECORD", "WHY_FOLDER", "WHY_TRACE"))
os.environ.pop("PYTHONPATH", None)
LINES, TRACER, SIZES = [], None, []
if FOLDER:
    from unflake_trace import Tracer
    TRACER = Tracer(TRACE, FOLDER)
    TRACER.start()
for name in os.environ.pop("WHY_PATHS").split(os.pathsep):
    sys.path.remove(name)
@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    if TRACER is None:
        yield
    else:
        with TRACER.recording(item):
            yield
        SIZES.append(os.path.getsize(TRACE))
def pytest_collectreport(report):
    LINES.extend([{"broken": report.nodeid, "why": str(report.longrepr)[-1500:]}] if report.failed else [])
def pytest_runtest_logreport(report):
    LINES.append({"nodeid": report.nodeid, "when": report.when, "outcome": report.outcome,
                  "wasxfail": hasattr(report, "wasxfail"), "subtest": hasattr(report, "context"),
                  "why": str(report.longrepr)[-1500:] if report.failed else ""})
def pytest_unconfigure():
    LINES.append({"sizes": SIZES})
    with open(TARGET, "w") as file: file.writelines(json.dumps(line) + "\\n" for line in LINES)
'''

LOOP = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from unflake_trace import Tracer
SOURCE = "def nothing():\\n    pass\\ndef run(count):\\n    for _ in range(count):\\n        nothing()\\n"
class Item: location = ("loop.py", 0, "loop")
tracer = Tracer(os.path.join(sys.argv[2], "loop.trace"), sys.argv[2])
tracer._connect(None)
def load(is_rewritten):
    code = compile(SOURCE, "loop.py", "exec")
    if is_rewritten:
        code = tracer.load("loop.py", "loop.py", lambda: tracer.compile(SOURCE, "loop.py", "loop.py"))
    space = {"__name__": "loop"}
    sys.modules["loop"] = type(sys)("loop")
    vars(sys.modules["loop"]).update(space)
    exec(code, vars(sys.modules["loop"]))
    return sys.modules["loop"].run
def clock(run, count):
    start = time.process_time()
    run(count)
    return time.process_time() - start
count = int(sys.argv[3])
times = [[], [], []]
for _ in range(7):
    plain = load(False)
    times[0].append(min(clock(plain, count) for _ in range(3)))
    rewritten = load(True)
    times[1].append(clock(rewritten, count))
    with tracer.recording(Item()):
        times[2].append(clock(rewritten, count))
print(*(min(one) / count * 1e9 for one in times))
"""

COST = """\
## Tracing

`bench/why.py` wrote this section, from one run of

    python3 bench/why.py --rounds {rounds} --write

A loop of calls of an empty function, in processor time, with the smallest of seven rounds. The first
1,000 calls of a place are told one by one; then they are counted. The goal is {loop_goal:.0f} times for the long
loop, {loop_met}.

{loops}

Whole suites, plain and with every test recorded: `pytest` as a command, from its start to its end, in turn, the
smallest of {rounds} rounds. "Memory" is the largest size of the process beyond the plain one. The goal is a median
of at most {suite_goal:.0f} times: it is **{median:.2f}**, {suite_met}.

{suites}
"""

SAME = """\
## Do tests notice that they are traced?

`python3 bench/why.py --write` runs whole suites of real projects plainly and with every test recorded, and compares
the outcome of each test. Tests whose outcome differs between two plain runs are listed and not counted.

{table}

{details}
"""


class Trouble(Exception):
    """What keeps a suite from being measured."""


class Suite(NamedTuple):
    name: str
    version: str
    python: str
    pytest: str
    requires: str
    args: str


class Run(NamedTuple):
    outcomes: Dict[str, str]
    reasons: Dict[str, str]
    processor: float
    wall: float
    memory: int
    largest: int


class Row(NamedTuple):
    suite: Suite
    plain: List[Run]
    traced: List[Run]


class Bench:
    """One suite's sources and environment under the work folder."""

    def __init__(self, suite: Suite, work: Path) -> None:
        self.suite = suite
        self.home = work / f"{suite.name}-{suite.version}-py{suite.python}-pytest{suite.pytest}"
        self.python, self.tree = self.home / "venv/bin/python", self.home / "tree"
        dropped = ("PYTEST_", "PYTHON", "UNFLAKE_")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.env.update(PYTHONHASHSEED="0", VIRTUAL_ENV=str(self.home / "venv"))
        self.env["PATH"] = f"{self.python.parent}{os.pathsep}{self.env['PATH']}"

    def prepare(self) -> None:
        suite, stamp = self.suite, self.home / "prepared.json"
        wishes = json.dumps(suite[:5])
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
            more = [f"pytest=={suite.pytest}", *suite.requires.split()]
            self.call([*pip, "install", "-e", str(self.tree), *more])
            stamp.write_text(wishes)
        (self.home / "plugin").mkdir(exist_ok=True)
        (self.home / "plugin/why_plugin.py").write_text(PLUGIN)

    def call(self, command: List[str]) -> None:
        streams: Dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, cwd=self.home, env=self.env, **streams)
        if done.returncode:
            output = done.stdout.decode(errors="replace")[-2000:]
            raise Trouble(f"`{' '.join(command[1:4])}` failed\n{output}")

    def run(self, is_traced: bool) -> Run:
        """Runs the suite once."""
        record, trace = self.home / "record.jsonl", self.home / "test.trace"
        record.write_text("")
        paths = [str(self.home / "plugin"), str(RUNNER)]
        env = {**self.env, "PYTHONPATH": os.pathsep.join(paths), "WHY_PATHS": os.pathsep.join(paths)}
        env.update(WHY_RECORD=str(record), WHY_TRACE=str(trace), WHY_FOLDER=str(self.tree) if is_traced else "")
        words = [str(self.python.parent / "pytest"), "-p", "why_plugin", "-p", "no:cacheprovider", "-q"]
        words += self.suite.args.split()
        start = time.monotonic()
        with (self.home / "out").open("wb") as out:
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            process = subprocess.Popen(words, cwd=self.tree, env=env, start_new_session=True, **streams)
            try:
                _, _, used = wait(process, RUN_LIMIT)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Trouble(f"it was still running after {RUN_LIMIT} s") from None
        wall = time.monotonic() - start
        if not record.read_text():
            raise Trouble(f"pytest left no record\n{(self.home / 'out').read_text(errors='replace')[-2000:]}")
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        outcomes, reasons = judge(lines)
        sizes = next(line["sizes"] for line in lines if "sizes" in line)
        processor = used.ru_utime + used.ru_stime
        return Run(outcomes, reasons, processor, wall, used.ru_maxrss * 1024, max(sizes, default=0))

    def compare(self, rounds: int) -> Row:
        self.prepare()
        self.run(False)  # What is compiled once is compiled now.
        self.run(True)
        plain, traced = [], []  # type: List[Run], List[Run]
        for _ in range(rounds):
            plain.append(self.run(False))
            traced.append(self.run(True))
        while len(plain) < PLAIN_RUNS and differences(Row(self.suite, plain, traced)):
            plain.append(self.run(False))
        return Row(self.suite, plain, traced)


def wait(process: Any, limit: float) -> Any:
    """Waits for a process, and says what it and its children have used."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = status
            return pid, status, used
        time.sleep(0.05)
    raise TimeoutError


def judge(lines: List[Dict[str, Any]]) -> Tuple[Dict[str, str], Dict[str, str]]:
    """One outcome for each test, and why it failed if it did."""
    reports: Dict[str, List[Dict[str, Any]]] = {}
    outcomes, reasons = {}, {}
    for line in lines:
        if "nodeid" in line:
            reports.setdefault(line["nodeid"], []).append(line)
        elif "broken" in line:
            outcomes[line["broken"]], reasons[line["broken"]] = "not collected", line["why"]
    for name, every in reports.items():
        words = [(one["when"], one["outcome"], one["wasxfail"], one["subtest"]) for one in every]
        outcomes[name] = ", ".join(sorted({f"{when} {how}{' x' * x}{' sub' * sub}" for when, how, x, sub in words}))
        reasons[name] = next((one["why"] for one in every if one["why"]), "")
    return outcomes, reasons


def unsteady(runs: List[Run]) -> List[str]:
    names = sorted({name for run in runs for name in run.outcomes})
    return [name for name in names if len({run.outcomes.get(name) for run in runs}) > 1]


def differences(row: Row) -> List[str]:
    """The tests that always end one way plainly, and otherwise under tracing."""
    moving, first = set(unsteady(row.plain)), row.plain[0].outcomes
    names = sorted({name for run in (row.plain[0], *row.traced) for name in run.outcomes})
    return [
        f"`{name}`: {first.get(name, 'not run')}; traced: {run.outcomes.get(name, 'not run')}"
        for name in names
        for run in row.traced[:1]
        if name not in moving and first.get(name) != run.outcomes.get(name)
    ]


def measure_loop(python: str, work: Path) -> List[str]:
    """Rows of the table of loops."""
    rows = []
    for count in LOOP_SIZES:
        command = [python, "-c", LOOP, str(RUNNER), str(work), str(count)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split()
        plain, rewritten, recorded = (float(one) for one in out)
        rows.append((count, plain, rewritten / plain, recorded / plain))
    return [f"{count:,} | {plain:.0f} ns | {quiet:.1f} | {loud:.1f}" for count, plain, quiet, loud in rows]


def measure_loops(work: Path) -> Tuple[str, bool]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    lines, is_met = ["Python | calls | one call | rewritten | recorded", "-|-:|-:|-:|-:"], True
    for version in ("3.8", "3.11", "3.12", "3.13"):
        pythons = [*map(str, pyenv.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}") or ""]
        if pythons[0]:
            rows = measure_loop(pythons[0], work)
            is_met = is_met and float(rows[-1].split("|")[-1]) <= LOOP_GOAL
            lines += [f"{version} | {row}" for row in rows]
    return "\n".join(f"| {line} |" for line in lines), is_met


def describe_cost(rows: List[Row]) -> Tuple[str, float]:
    lines = ["Suite | Python | tests | plain | traced, processor | traced, wall | memory | largest trace"]
    lines.append("-|-|-:|-:|-:|-:|-:|-:")
    ratios = []
    for suite, plain, traced in rows:
        best = [[min(getattr(run, what) for run in runs) for runs in (plain, traced)] for what in ("processor", "wall")]
        ratios.append(best[0][1] / best[0][0])
        memory = (min(run.memory for run in traced) - min(run.memory for run in plain)) / (1 << 20)
        largest = max(run.largest for run in traced) / (1 << 10)
        setting = f"{suite.name} {suite.version} | {suite.python} | {len(plain[0].outcomes):,} | {best[0][0]:.1f} s"
        lines.append(f"{setting} | {ratios[-1]:.2f} | {best[1][1] / best[1][0]:.2f} | {memory:+.0f} MB | {largest:,.0f} KB")
    return "\n".join(f"| {line} |" for line in lines), statistics.median(ratios) if ratios else 0.0


def describe_same(rows: List[Row], troubles: List[str]) -> str:
    lines = ["Suite | Python | pytest | tests | same | differ | differ by themselves", "-|-|-|-:|-:|-:|-:"]
    details = list(troubles)
    for row in rows:
        suite, moving, other = row.suite, unsteady(row.plain), differences(row)
        every = len(row.plain[0].outcomes)
        same = every - len(other) - len(moving)
        setting = f"{suite.name} {suite.version} | {suite.python} | {suite.pytest}"
        lines.append(f"{setting} | {every:,} | {same:,} | {len(other)} | {len(moving)}")
        details += [f"{suite.name}: {one}" for one in other[:SHOWN]]
        details += [f"{suite.name}: `{one}` differs between plain runs" for one in moving[:SHOWN]]
    text = "\n".join(f"- {one}" for one in details) or "No test ended otherwise."
    return SAME.format(table="\n".join(f"| {line} |" for line in lines), details=text)


def replace_section(page: Path, name: str, text: str) -> None:
    """Puts a section in the place of the one that was there, or at the end."""
    first, last = (f"<!-- {words} bench/why.py: {name} -->" for words in ("written by", "end of"))
    section = f"{first}\n\n{text}\n{last}"
    old = page.read_text()
    found = re.search(re.escape(first) + ".*?" + re.escape(last), old, re.DOTALL)
    new = old.replace(found[0], section) if found else f"{old.rstrip()}\n\n{section}\n"
    page.write_text(new)


def show_reasons(row: Row) -> None:
    reasons = [(name, why) for name, why in row.traced[0].reasons.items() if why]
    own = [(name, why) for name, why in reasons if not row.plain[0].reasons.get(name)]
    for name, why in own[:SHOWN]:
        print(f"--- {name}\n{why}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unflake-why"
    parser.add_argument("--work", type=Path, default=cache, help="the folder for sources and environments")
    parser.add_argument("--only", action="append", help="only the suite of this name; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="how often each suite runs plainly and traced")
    parser.add_argument("--no-loops", action="store_true", help="leave the loops out")
    parser.add_argument("--show", action="store_true", help="show why tests fail that fail only when traced")
    parser.add_argument("--write", action="store_true", help="write the sections into the pages")
    options = parser.parse_args()
    work, rows, troubles = options.work.resolve(), [], []  # type: Path, List[Row], List[str]
    work.mkdir(parents=True, exist_ok=True)
    loops, loop_met = ("", True) if options.no_loops else measure_loops(work)
    print(loops, file=sys.stderr, flush=True)
    for line in SUITES.strip().splitlines():
        suite = Suite(*(part.strip() for part in line.split("|")))
        if suite.name not in (options.only or suite):
            continue
        row: Optional[Row] = None
        try:
            row = Bench(suite, work).compare(options.rounds)
        except Trouble as trouble:
            print(suite.name, trouble, file=sys.stderr, flush=True)
            troubles.append(f"{suite.name} could not be measured: {str(trouble).splitlines()[0]}")
            continue
        rows.append(row)
        print(describe_cost([row])[0].splitlines()[-1], *differences(row)[:SHOWN], sep="\n", file=sys.stderr, flush=True)
        if options.show:
            show_reasons(row)
    suites, median = describe_cost(rows)
    suite_met = 0 < median <= SUITE_GOAL
    words = {True: "met", False: "**missed**"}
    cost = COST.format(
        rounds=options.rounds, loops=loops, suites=suites, median=median, loop_goal=LOOP_GOAL,
        suite_goal=SUITE_GOAL, loop_met=words[loop_met], suite_met=words[suite_met],
    )  # fmt: skip
    same = describe_same(rows, troubles)
    print(cost, same, sep="\n")
    if options.write:
        replace_section(REPOSITORY / PAGES["cost"], "cost", cost)
        replace_section(REPOSITORY / PAGES["same"], "same", same)
    is_same = not troubles and not any(differences(row) for row in rows)
    return 0 if is_same and loop_met and suite_met else 1


if __name__ == "__main__":
    sys.exit(main())

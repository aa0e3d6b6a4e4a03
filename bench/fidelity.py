"""Checks that `unflake run` without reruns is plain `pytest`: same tests, same outcomes, same order.

For each real project below it downloads the source distribution, makes a virtual environment, and runs the
project's own suite in fresh copies of the sources at the same path: by plain `pytest`, recorded by a small
plugin that shares no code with unflake, and by `unflake run --immediate 0 --end 0 --fresh 0` with the same
arguments. It also holds `unflake list` against `pytest --collect-only -q`.

A test whose outcome differs between plain runs differs by itself: it is listed, not counted. When
unflake differs, plain pytest runs a few times more, as only it can show that a test is unsteady.
It exits with 1 on any difference. It needs the standard library only.
"""

# ruff: noqa: E501 - the table of projects has long lines

import argparse
import datetime
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

RUN_LIMIT, PLAIN_RUNS, SHOWN = 120, 6, 15  # seconds; at most, before a difference counts; lines per project
DIFFERS, LISTED, UNSTEADY = "differs from plain pytest", "is listed differently", "differs by itself"
Outcomes = List[Tuple[str, str]]

RECORDER = '''
import json, os, sys
TARGET, LINES = os.environ.pop("FIDELITY_RECORD"), []
os.environ.pop("PYTHONPATH", None)
sys.path.remove(os.path.dirname(__file__))  # Tests see the path as without this plugin.
def pytest_collection_finish(session): LINES.append({"items": [item.nodeid for item in session.items]})
def pytest_collectreport(report): LINES.extend([{"broken": report.nodeid}] if report.failed else [])
def pytest_runtest_logstart(nodeid): LINES.append({"start": nodeid})
def pytest_runtest_logreport(report):
    LINES.append({"nodeid": report.nodeid, "when": report.when, "outcome": report.outcome,
                  "wasxfail": hasattr(report, "wasxfail"), "subtest": hasattr(report, "context")})
def pytest_unconfigure():
    with open(TARGET, "w") as file: file.writelines(json.dumps(line) + "\\n" for line in LINES)
'''

# Name, version, style of tests, Python, pytest, what else its tests need, arguments for pytest.
PROJECTS = """
attrs | 25.3.0 | hypothesis, classes | 3.12 | 9.0.2 | hypothesis cloudpickle | tests/test_make.py tests/test_validators.py tests/test_funcs.py --hypothesis-seed=1
packaging | 24.2 | heavily parametrised, odd ids | 3.8 | 8.3.5 | pretend | tests/test_requirements.py tests/test_markers.py tests/test_tags.py tests/test_metadata.py
python-dateutil | 2.9.0.post0 | unittest.TestCase, over 2,000 tests | 3.8 | 6.2.5 | freezegun hypothesis pytest-cov six | tests --hypothesis-seed=1
more-itertools | 10.7.0 | unittest with pytest's own subtests, doctests | 3.12 | 9.0.2 | | --doctest-modules more_itertools tests/test_recipes.py
boltons | 25.0.0 | functions, doctests | 3.13 | 8.3.5 | | --doctest-modules boltons tests
pytest-asyncio | 1.2.0 | pytest-asyncio, pytester | 3.12 | 8.4.2 | hypothesis | tests/markers tests/modes
pytest-mock | 3.15.1 | pytest-mock, monkeypatch, pytester | 3.13 | 8.4.2 | pytest-asyncio | tests
jinja2 | 3.1.6 | classes, wide fixtures | 3.12 | 9.0.2 | trio | tests
marshmallow | 3.26.1 | classes, pytest-randomly | 3.12 | 9.0.2 | simplejson pytz pytest-randomly | -p randomly --randomly-seed=1 tests --deselect=tests/test_deserialization.py::TestFieldDeserialization::test_invalid_datetime_deserialization
tenacity | 9.0.0 | asyncio, pytest-rerunfailures | 3.12 | 9.0.2 | tornado typeguard pytest-rerunfailures | --reruns 1 tests
h11 | 0.16.0 | plain functions | 3.12 | 7.4.4 | | h11
freezegun | 1.5.5 | frozen time | 3.12 | 7.4.4 | | tests
click | 8.2.1 | monkeypatch, capture | 3.13 | 8.3.5 | | tests --deselect=tests/test_utils.py::test_echo_via_pager
pyfakefs | 5.9.2 | unittest, patched modules | 3.12 | 9.0.2 | | --pyargs pyfakefs.tests.fake_os_test
psutil | 7.1.0 | processes, sockets, pytest-subtests | 3.12 | 8.3.5 | pytest-instafail pytest-subtests pytest-xdist setuptools | --pyargs psutil.tests.test_connections psutil.tests.test_process psutil.tests.test_misc
"""

PAGE = """# Fidelity: `unflake run` against plain `pytest`

Without reruns, `unflake run` is to give every test of a suite the outcome that plain `pytest` gives it,
in the same order. This page holds it against real projects, each pinned, each tested by its own suite.
`bench/fidelity.py` says how the runs are made and compared. To repeat it, after `cargo build --release`:
`python3 bench/fidelity.py --unflake target/release/unflake --write docs/evaluation/fidelity.md`

Every run has `PYTHONHASHSEED=0`; "plain s" is the mean of two runs. The deselected tests have ids made of
the time of day (marshmallow) or lose a race now and then under plain pytest too (click). Run on {date}.

## Outcomes and order

{runs}

## Listing: `unflake list` against `pytest --collect-only -q`

{lists}

## Differences

{details}
"""


class Trouble(Exception):
    """What keeps a project from being compared; the first line has no path in it."""


class Project(NamedTuple):
    name: str
    version: str
    style: str
    python: str
    pytest: str
    requires: str
    args: str


class Recording(NamedTuple):
    outcomes: Outcomes
    broken: List[str]
    order: List[str]
    seconds: float


class Row(NamedTuple):
    project: Project
    plain: List[Recording]
    ours: Recording
    listed: int
    notes: Dict[str, List[str]]


class Bench:
    """One project's sources and environment under the work folder."""

    def __init__(self, project: Project, work: Path, unflake: Path) -> None:
        self.project, self.unflake = project, unflake
        self.home = work / f"{project.name}-{project.version}-py{project.python}-pytest{project.pytest}"
        self.venv = self.home / "venv"

    def prepare(self) -> None:
        """Downloads, unpacks and installs, unless an earlier call did so for the same wishes."""
        project, stamp = self.project, self.home / "prepared.json"
        run = functools.partial(subprocess.run, cwd=self.home, check=True, stdout=subprocess.DEVNULL)
        wishes = json.dumps([project.requires, project.pytest, project.python])
        if stamp.exists() and stamp.read_text() == wishes:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "plugin").mkdir(parents=True)
        (self.home / "plugin/fidelity_recorder.py").write_text(RECORDER)
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        pythons = [*map(str, pyenv.glob(f"{project.python}.*/bin/python")), f"python{project.python}"]
        run([pythons[0], "-m", "venv", str(self.venv)])
        pip = [str(self.venv / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
        source = ["--no-deps", "--no-binary", project.name, f"{project.name}=={project.version}"]
        run([*pip, "download", "-d", "download", *source])
        archive = next((self.home / "download").iterdir())
        shutil.unpack_archive(str(archive), str(self.home / "sdist"))
        run([*pip, "install", str(archive), f"pytest=={project.pytest}", *project.requires.split()])
        stamp.write_text(wishes)

    def call(self, command: List[str], **more: str) -> Tuple[int, str, str, float]:
        """Runs a command in a fresh copy of the sources; returns exit code, both outputs and seconds."""
        tree = self.home / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(next((self.home / "sdist").iterdir()), tree, symlinks=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
        env.update(more, VIRTUAL_ENV=str(self.venv), PYTHONHASHSEED="0")
        env["PATH"] = f"{self.venv / 'bin'}{os.pathsep}{env['PATH']}"
        words, outputs = [*command, *self.project.args.split()], [self.home / "out", self.home / "err"]
        start = time.monotonic()
        with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            process = subprocess.Popen(words, cwd=tree, env=env, start_new_session=True, **streams)
            try:
                code = process.wait(RUN_LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                raise Trouble(f"`{Path(command[0]).name}` was still running after {RUN_LIMIT} s") from None
        texts = [output.read_text(errors="replace") for output in outputs]
        return code, texts[0], texts[1], time.monotonic() - start

    def pytest(self, *more: str) -> Tuple[List[Dict[str, Any]], float]:
        """Runs plain pytest; returns what the recorder saw."""
        record = self.home / "record.jsonl"
        record.write_text("")
        env = {"FIDELITY_RECORD": str(record), "PYTHONPATH": str(self.home / "plugin")}
        code, out, err, seconds = self.call([str(self.venv / "bin/pytest"), "-p", "fidelity_recorder", *more], **env)
        if not record.read_text():
            raise Trouble(f"plain pytest left no record (exit {code})\n{out[-1500:]}{err[-1500:]}")
        return [json.loads(line) for line in record.read_text().splitlines()], seconds

    def run_plain(self) -> Recording:
        lines, seconds = self.pytest()
        outcomes: Outcomes = []
        reports: List[Dict[str, Any]] = []
        for line in [*lines, {"start": ""}]:
            if "start" in line:
                outcomes += [(reports[0]["nodeid"], judge(reports))] if reports else []
                reports = []
            elif "outcome" in line:
                # A plugin that reruns discards what it reported of the attempt before.
                reports = [] if line["outcome"] == "rerun" else [*reports, line]
        broken = [line["broken"] for line in lines if "broken" in line]
        return Recording(outcomes, broken, [name for name, _ in outcomes], seconds)

    def ask_unflake(self, *command: str) -> Tuple[Any, float]:
        options = ["--format", "json", "--python", str(self.venv), "--"]
        code, out, err, seconds = self.call([str(self.unflake), *command, *options])
        if not out.startswith("{"):
            raise Trouble(f"unflake gave no result (exit {code})\n{err[-3000:]}")
        return json.loads(out), seconds

    def run_unflake(self) -> Recording:
        report, seconds = self.ask_unflake("run", "--immediate", "0", "--end", "0", "--fresh", "0")
        outcomes = [(test["id"], test["outcome"]) for test in report["tests"] if test["outcome"] != "not-run"]
        order = [name for vm in report["vms"] for name in vm["order"]]
        return Recording(outcomes, [error["place"] for error in report["collection_errors"]], order, seconds)

    def compare(self) -> Row:
        try:
            self.prepare()
        except (OSError, subprocess.CalledProcessError) as error:
            raise Trouble(f"its environment could not be made\n{error}") from None
        plain, ours, differences = [self.run_plain()], self.run_unflake(), ["not compared yet"]
        if not plain[0].outcomes:
            raise Trouble(f"plain pytest ran no test, and could not collect {plain[0].broken}")
        while len(plain) < 2 or (differences and len(plain) < PLAIN_RUNS):
            plain.append(self.run_plain())
            unsteady, differences = weigh(plain, ours)
        listed = next(line["items"] for line in self.pytest("--collect-only", "-q")[0] if "items" in line)
        ours_listed = [test["id"] for test in self.ask_unflake("list")[0]["tests"]]
        notes = {DIFFERS: differences, LISTED: diff(listed, ours_listed), UNSTEADY: unsteady}
        return Row(self.project, plain, ours, len(listed), notes)


def judge(reports: List[Dict[str, Any]]) -> str:
    """One outcome for the reports of one test; a subtest counts only when it failed."""
    bad = [report for report in reports if report["outcome"] == "failed"]
    if bad:
        return "failed" if any(report["when"] == "call" for report in bad) else "error"
    seen = {(report["outcome"], report["wasxfail"]) for report in reports if not report["subtest"]}
    words = {("skipped", True): "xfailed", ("passed", True): "xpassed", ("skipped", False): "skipped"}
    return next((word for kind, word in words.items() if kind in seen), "passed")


def weigh(plain: List[Recording], ours: Recording) -> Tuple[List[str], List[str]]:
    """The tests that differ between plain runs, and in what unflake's run differs from those."""
    first = plain[0]
    changed = [set(first.outcomes) ^ set(other.outcomes) for other in plain[1:]]
    unsteady = {name for change in changed for name, _ in change}
    steady, ours_steady = ([one for one in run.outcomes if one[0] not in unsteady] for run in (first, ours))
    differences = diff(steady, ours_steady) + diff(first.broken, ours.broken)
    # A test that a plugin of the project reran is in unflake's order once per attempt.
    order = [name for at, name in enumerate(ours.order) if at == 0 or ours.order[at - 1] != name]
    if all(other.order == first.order for other in plain) and order != first.order:
        differences.append("the tests ran in another order")
    return sorted(unsteady), differences


def diff(plain: List[Any], ours: List[Any]) -> List[str]:
    """The differences of two lists, as lines; nothing if they are equal, order included."""
    left, right = set(plain), set(ours)
    lines = [f"only plain pytest: {one!r}" for one in plain if one not in right]
    lines += [f"only unflake: {one!r}" for one in ours if one not in left]
    return lines or ([] if plain == ours else ["the same entries in another order or number"])


def describe(rows: List[Row], troubles: List[str]) -> Dict[str, str]:
    runs = ["project | version | style of tests | Python | pytest | tests | same | plain s | unflake s | ratio"]
    lists, details = ["project | version | tests listed | same"], list(troubles)
    for head in (runs, lists):
        head.append("|".join(["---"] * (head[0].count("|") + 1)))
    for project, plain, ours, listed, notes in rows:
        name, mean = f"{project.name} | {project.version}", (plain[0].seconds + plain[1].seconds) / 2
        same, same_list = ("**no**" if notes[title] else "yes" for title in (DIFFERS, LISTED))
        setting = f"{name} | {project.style} | {project.python} | {project.pytest} | {len(plain[0].outcomes):,}"
        runs.append(f"{setting} | {same} | {mean:.1f} | {ours.seconds:.1f} | {ours.seconds / mean:.2f}")
        lists.append(f"{name} | {listed:,} | {same_list}")
        for title, lines in notes.items():
            details += [f"{project.name} {title} ({len(lines)} in all): `{line}`" for line in lines[:SHOWN]]
    tables = ["\n".join(f"| {line} |" for line in lines) for lines in (runs, lists)]
    text = "\n".join(f"- {line}" for line in details) or "None."
    return {"runs": tables[0], "lists": tables[1], "details": text}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unflake-fidelity"
    parser.add_argument("--unflake", type=Path, default=Path("target/release/unflake"), help="the binary")
    parser.add_argument("--work", type=Path, default=cache, help="the folder for sources and environments")
    parser.add_argument("--only", action="append", help="only the project of this name; may be repeated")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    options = parser.parse_args()
    rows, troubles = [], []  # type: List[Row], List[str]
    for line in PROJECTS.strip().splitlines():
        project = Project(*(part.strip() for part in line.split("|")))
        if project.name not in (options.only or project):
            continue
        print(f"{project.name} {project.version} …", file=sys.stderr, flush=True)
        try:
            rows.append(Bench(project, options.work.resolve(), options.unflake.resolve()).compare())
        except Trouble as trouble:
            print(trouble, file=sys.stderr, flush=True)
            troubles.append(f"{project.name} could not be compared: {str(trouble).splitlines()[0]}")
    page = PAGE.format(date=datetime.date.today(), **describe(rows, troubles))
    print(page)
    if options.write:
        options.write.write_text(page)
    return 1 if troubles or any(row.notes[DIFFERS] or row.notes[LISTED] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

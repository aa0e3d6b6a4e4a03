"""Scores `unflake order` on generated suites and real projects with a known truth, next to its peers.

    cargo build --release
    python3 bench/order.py --work ~/.cache/unflake/order-bench

The generated suites come from `bench/order_suites.py`, the real projects from `bench/cases.json`. The peers
are whyflaky, detect-test-pollution (which is told the victims) and pytest-randomly, in a virtualenv of their
own. Every contender gets a fresh copy of the same tree. Each result is kept in the folder `--work`, so that
an interrupted run goes on where it was; `--again` forgets those of one contender.
"""

# ruff: noqa: E501 - rows of tables are long

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from order_suites import Suite, Truth, make_suites, write_suite
from run import find_unflake

BENCH = Path(__file__).resolve().parent
PYTEST, LIMIT, ORDERS = "pytest==8.3.5", 900, 10
PEERS = ["whyflaky==0.1.0", "detect-test-pollution==1.2.0", "pytest-randomly==5.1.0"]
# The state that the tests of the real projects share, as their sources show.
STATES = {
    "geom": ["geom.eps"],
    "crom": ["factory.auto_"],
    "multiindex": ["fixture mi"],
    "python-fs": ["fs/tests/test_dir/foo"],
    "jsonextra": ["date_rex"],
    "json-storage-manager": [".json"],
    "config-better": ["os.environ['XDG_"],
    "PyGraph": ["TestSimpleGraph.graph"],
}
Culprits = FrozenSet[FrozenSet[str]]


class Found(NamedTuple):
    """The answer of a contender about one test."""

    role: str
    culprits: Culprits
    is_ordered: bool
    cleaners: FrozenSet[str]
    state: List[str]


class Place(NamedTuple):
    """A suite or a project: how to make its tree, what to run it with, and what is true."""

    name: str
    tests: int
    suite: Optional[Suite]
    case: Dict[str, Any]
    truth: Dict[str, Truth]


class Bench:
    """Makes trees and virtualenvs, runs contenders, and keeps what they said."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.unflake, self.work, self.source, self.given = args.unflake, args.work, args.source, args.python
        self.jobs = args.jobs
        self.kept = self.work / "results.json"
        self.results: Dict[str, Any] = json.loads(self.kept.read_text()) if self.kept.exists() else {}

    # --- trees and virtualenvs ------------------------------------------------------------------

    def make_tree(self, place: Place) -> Path:
        tree = self.work / "tree" / place.name
        for folder in (tree, self.work / "temporary", self.work / "outside"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        if place.suite:
            write_suite(place.suite, tree)
            call(["git", "init", "--quiet", str(tree)])
            return tree
        owner, name = place.case["repository"].split("/")
        call(["git", "clone", "--quiet", self.source.format(owner=owner, name=name), str(tree)])
        call(["git", "-C", str(tree), "checkout", "--quiet", "--detach", place.case["commit"]])
        return tree

    def make_venv(self, wishes: List[str]) -> Path:
        words = re.sub(r"[^\w.]+", "-", "_".join(sorted(wishes)))[:200]
        folder = self.work / "venvs" / words
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
            python = self.given or next(map(str, pyenv.glob("3.11.*/bin/python")), "python3.11")
            call([python, "-m", "venv", str(folder)])
            call([str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *wishes])
            (folder / "ready").touch()
        return folder / "bin"

    # --- running --------------------------------------------------------------------------------

    def run(self, place: Place, tree: Path, command: List[str], **more: str) -> Tuple[int, str, float]:
        """Exit code, output and seconds; the code is -1 if it was still running at the limit."""
        env = self.make_environment(place, tree, more)
        since = time.perf_counter()
        log = (self.work / "log.txt").open("w")
        process = subprocess.Popen(command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return -1, process.communicate()[0], time.perf_counter() - since
        return process.returncode, out, time.perf_counter() - since

    def make_environment(self, place: Place, tree: Path, more: Dict[str, str]) -> Dict[str, str]:
        dropped = ("PYTEST_", "PYTHON", "GITHUB_", "CI", "TZ", "VIRTUAL_ENV")
        env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        env["PYTHONPATH"] = str(tree / place.case.get("pythonpath", "."))
        env.update(more, TMPDIR=str(self.work / "temporary"), UNFLAKE_TEST_FOLDER=str(self.work / "outside"))
        return env

    def ask(self, contender: str, place: Place) -> Dict[str, Any]:
        """The answer of a contender about a place, from an earlier run if there is one."""
        key = f"{contender} {place.name}"
        if key not in self.results:
            ask = {"unflake": self.ask_unflake, "whyflaky": self.ask_whyflaky}
            ask.update({"detect-test-pollution": self.ask_pollution, "pytest-randomly": self.ask_randomly})
            self.results[key] = ask[contender](place)
            self.work.mkdir(parents=True, exist_ok=True)
            self.kept.write_text(json.dumps(self.results, indent=1))
            print(f"{key}: {self.results[key]['seconds']:.1f} s", file=sys.stderr, flush=True)
        result: Dict[str, Any] = self.results[key]
        return result

    def ask_unflake(self, place: Place) -> Dict[str, Any]:
        tree, python = self.make_tree(place), self.make_venv([PYTEST, *place.case.get("requirements", [])]) / "python"
        command = [str(self.unflake), "order", "--python", str(python), "--jobs", self.jobs, "--format", "json", "--timeout", "60", "--"]
        code, out, seconds = self.run(place, tree, command + place.case.get("args", []))
        if code not in (0, 1):
            print((self.work / "log.txt").read_text()[-1500:], file=sys.stderr)
            return {"seconds": seconds, "trials": 0, "found": {}, "trouble": f"exit code {code}"}
        report, found = json.loads(out), {}
        for finding in report["findings"]:
            order = finding.get("order") or {}
            cause = finding.get("cause") or {"shown": [], "suspects": []}
            culprits = order.get("culprits", [])
            found[finding["id"]] = {
                "role": " ".join(filter(None, (finding["verdict"], finding["kind"]))),
                "culprits": [culprit["tests"] for culprit in culprits],
                "ordered": any(culprit["ordered"] for culprit in culprits),
                "cleaners": order.get("cleaners", []),
                "state": [name_piece(piece) for piece in cause["shown"] or cause["suspects"][:3]],
            }
        trials = sum((finding.get("order") or {}).get("runs", 0) for finding in report["findings"])
        return {"seconds": seconds, "trials": trials, "found": found, "tests": report["summary"]["tests"]}

    def ask_whyflaky(self, place: Place) -> Dict[str, Any]:
        tree, folder = self.make_tree(place), self.make_venv([PYTEST, *PEERS, *place.case.get("requirements", [])])
        output = self.work / "whyflaky.json"
        output.unlink(missing_ok=True)
        command = [str(folder / "whyflaky"), "scan", str(tree), "--quiet", "--json", str(output), "--db", str(self.work / "temporary/db")]
        code, _, seconds = self.run(place, tree, command, PATH=f"{folder}:{os.environ['PATH']}", PYTEST_ADDOPTS="-p no:randomly")
        if not output.exists():
            return {"seconds": seconds, "trials": 0, "found": {}, "trouble": f"exit code {code}"}
        report, found = json.loads(output.read_text()), {}
        for flake in report["flakes"]:
            diagnosis = flake.get("diagnosis") or {}
            polluters = diagnosis.get("polluters") or []
            is_victim = flake["kind"].startswith("order-dependent")
            state = diagnosis.get("polluted_state") or []
            found[flake["test_id"]] = {
                "role": "victim" if is_victim else flake["kind"],
                "culprits": [polluters] if polluters else [],
                "ordered": False,
                "cleaners": [],
                "state": state,
            }
        return {"seconds": seconds, "trials": report["cost"]["trials"], "found": found}

    def ask_pollution(self, place: Place) -> Dict[str, Any]:
        """It looks for the polluter of a victim that it is told."""
        folder, seconds, found = self.make_venv([PYTEST, *PEERS, *place.case.get("requirements", [])]), 0.0, {}
        for test in place.truth:
            tree = self.make_tree(place)
            command = [str(folder / "detect-test-pollution"), "--failing-test", test, "--tests", "."]
            _, out, spent = self.run(place, tree, command, PATH=f"{folder}:{os.environ['PATH']}", PYTEST_ADDOPTS="-p no:randomly")
            seconds += spent
            named = re.findall(r"-> the polluting test is: (.*)", out)
            if named:
                found[test] = {"role": "victim", "culprits": [named], "ordered": False, "cleaners": [], "state": []}
        return {"seconds": seconds, "trials": 0, "found": found}

    def ask_randomly(self, place: Place) -> Dict[str, Any]:
        """It shuffles; a test that fails in one order and passes in another is what it shows."""
        folder, total = self.make_venv([PYTEST, *PEERS, *place.case.get("requirements", [])]), 0.0
        failed: List[FrozenSet[str]] = []
        for seed in range(ORDERS):
            tree = self.make_tree(place)
            command = [str(folder / "pytest"), f"--randomly-seed={seed}", "-q", "-rfE", *place.case.get("args", [])]
            _, out, seconds = self.run(place, tree, command)
            total += seconds
            failed.append(frozenset(re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", out, re.MULTILINE)))
        unsteady = frozenset.union(*failed) - frozenset.intersection(*failed)
        said = {"role": "unsteady", "culprits": [], "ordered": False, "cleaners": [], "state": []}
        return {"seconds": total, "trials": ORDERS, "found": {test: said for test in unsteady}}

    # --- showing what the truth does not know ----------------------------------------------------

    def demonstrate(self, place: Place, test: str, role: str, culprits: List[str]) -> bool:
        """Whether plain pytest shows it twice: one end alone, the other after the culprits."""
        key = f"shown {place.name} {' '.join([*culprits, test])}"
        if key not in self.results:
            self.results[key] = self.show_plainly(place, test, role, culprits)
            self.kept.write_text(json.dumps(self.results, indent=1))
        return bool(self.results[key])

    def show_plainly(self, place: Place, test: str, role: str, culprits: List[str]) -> bool:
        python = self.make_venv([PYTEST, *place.case.get("requirements", [])]) / "python"
        wanted = role == "victim"
        for _ in range(2):
            for before, is_pass in (([], wanted), (culprits, not wanted)):
                command = [str(python), "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *before, test]
                code, out, _ = self.run(place, self.make_tree(place), command)
                lines = out.splitlines()
                failed = any(re.match(r"(FAILED|ERROR) ", line) and line.split(" ", 1)[1].startswith(test) for line in lines)
                if code not in (0, 1) or failed == is_pass:
                    return False
        return True


def name_piece(piece: Dict[str, Any]) -> str:
    """Its name in the report; for a fixture that is alive also the thing that it stands for."""
    return f"{piece['path']} = {piece['after']}" if piece["kind"] == "fixture" else str(piece["path"])


def call(command: List[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stdout.decode(errors='replace')[-2000:]}")


# --- the truth ----------------------------------------------------------------------------------


def generated_places(count: int) -> List[Place]:
    return [Place(suite.name, suite.tests, suite, {}, suite.truth) for suite in make_suites(count)]


def real_places(only: Optional[List[str]] = None) -> List[Place]:
    places = []
    for name, case in json.loads((BENCH / "cases.json").read_text()).items():
        truth = {}
        for test, known in case["order_dependent"].items():
            sets = [known["by"]] if known["together"] else [[one] for one in known["by"]]
            culprits = frozenset(frozenset(group) for group in sets)
            truth[test] = Truth("real", name, known["kind"], culprits, False, frozenset(), STATES[name])
        if truth and name in (only or [name]):
            places.append(Place(name, 0, None, case, truth))
    return places


# --- scoring ------------------------------------------------------------------------------------


class Score:
    """Counts of one contender over many places."""

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self.of: Dict[str, int] = {}
        self.false: List[str] = []
        self.missed: List[str] = []
        self.seconds, self.trials, self.places = 0.0, 0, 0

    def add(self, what: str, is_right: bool) -> None:
        self.of[what] = self.of.get(what, 0) + 1
        self.counts[what] = self.counts.get(what, 0) + int(is_right)

    def show(self, what: str) -> str:
        right, of = self.counts.get(what, 0), self.of.get(what, 0)
        return f"{right} of {of} ({100 * right / of:.0f} %)" if of else "–"


def score(bench: Bench, contender: str, places: List[Place]) -> Score:
    total = Score()
    for place in places:
        result = bench.ask(contender, place)
        total.seconds, total.trials, total.places = total.seconds + result["seconds"], total.trials + result["trials"], total.places + 1
        found = result["found"]
        for test, truth in place.truth.items():
            score_test(total, place, test, truth, found.get(test), contender)
        for test, said in found.items():
            # Who only shuffles says of no test that it depends on order; and where the truth is not known as a
            # whole, nothing can be shown without culprits, be it true or not.
            can_tell = said["culprits"] or place.suite is not None
            if said["role"] in ("victim", "brittle") and can_tell and test not in place.truth:
                is_shown = place.suite is None and any(
                    bench.demonstrate(place, test, said["role"], culprits) for culprits in said["culprits"]
                )
                total.add("extra and shown by plain pytest", is_shown)
                if not is_shown:
                    total.false.append(f"{place.name}: `{test}` as {said['role']}")
    return total


def score_test(total: Score, place: Place, test: str, truth: Truth, said: Any, contender: str) -> None:
    role = truth.role
    is_found = said is not None and said["role"] in (role, "unsteady", "victim", "brittle")
    total.add("found", is_found)
    total.add(f"{role}s found", is_found)
    total.add("role", is_found and said["role"] == role)
    culprits = frozenset(frozenset(group) for group in said["culprits"]) if is_found else frozenset()
    is_one = bool(culprits & truth.culprits)
    is_all = culprits == truth.culprits and said["ordered"] == truth.is_ordered if is_found else False
    total.add(f"{role}s: a right set", is_one)
    total.add(f"{role}s: all sets", is_all or (place.suite is None and culprits >= truth.culprits and is_one))
    if truth.state:
        total.add("state", is_found and any(fits(path, state) for path in said["state"] for state in truth.state))
    if truth.cleaners:
        total.add("cleaners", is_found and frozenset(said["cleaners"]) == truth.cleaners)
    wrong = [what for what, right in (("found", is_found), ("culprits", is_one)) if not right]
    if is_found and truth.state and not any(fits(path, state) for path in said["state"] for state in truth.state):
        wrong.append(f"state (said {said['state'][:2]})")
    if is_found and not is_all and is_one and place.suite:
        wrong.append("all sets")
    if wrong and contender == "unflake":
        what = said["role"] if said else "nothing"
        total.missed.append(f"{place.name}: `{test}` ({truth.kind}, {truth.shape}), said {what}: wrong {', '.join(wrong)}")


def fits(path: str, state: str) -> bool:
    return state in path or (len(path) > 2 and path in state)


# --- telling ------------------------------------------------------------------------------------

MEASURES = ["found", "victims found", "brittles found", "role", "victims: a right set", "victims: all sets", "brittles: a right set", "brittles: all sets", "cleaners", "state", "extra and shown by plain pytest"]


def write_table(scores: Dict[str, Score]) -> str:
    lines = ["| | " + " | ".join(scores) + " |", "|-|" + "-:|" * len(scores)]
    for what in MEASURES:
        lines.append(f"| {what} | " + " | ".join(one.show(what) for one in scores.values()) + " |")
    lines.append("| said falsely | " + " | ".join(str(len(one.false)) for one in scores.values()) + " |")
    lines.append("| trials | " + " | ".join(f"{one.trials:,}" for one in scores.values()) + " |")
    lines.append("| seconds | " + " | ".join(f"{one.seconds:,.0f}" for one in scores.values()) + " |")
    return "\n".join(lines)


def replace_section(path: Path, name: str, text: str, title: str) -> None:
    """Writes the section of this script into a page, and leaves the rest of the page alone."""
    page = path.read_text() if path.exists() else f"# {title}\n"
    section = f"<!-- written by {name} -->\n{text.strip()}\n<!-- end of {name} -->\n"
    marks = re.compile(rf"<!-- written by {re.escape(name)} -->.*?<!-- end of {re.escape(name)} -->\n", re.DOTALL)
    page = marks.sub(lambda _: section, page) if marks.search(page) else f"{page.rstrip()}\n\n{section}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)


def write_evaluation(bench: Bench, args: argparse.Namespace) -> None:
    parts = ["## Generated suites and real projects\n\n`bench/order.py` wrote this section.\n"]
    if "generated" in args.only:
        places = generated_places(args.suites)
        mine = score(bench, "unflake", places)
        sizes = [place.tests for place in places]
        parts.append(f"### {len(places)} generated suites of {min(sizes)} to {max(sizes)} tests\n\n{write_table({'unflake': mine})}\n")
        parts.append(list_up(mine))
    if "real" in args.only:
        mine = score(bench, "unflake", real_places(args.projects))
        parts.append(f"### Real projects (`bench/cases.json`)\n\n{write_table({'unflake': mine})}\n")
        parts.append(list_up(mine))
    page = "\n".join(parts)
    print(page)
    replace_section(args.write, "bench/order.py", page, "Order dependence")


def list_up(mine: Score) -> str:
    lines = [f"- missed or wrong: {line}" for line in mine.missed] + [f"- said falsely: {line}" for line in mine.false]
    return ("\n".join(lines) or "Nothing was missed, and nothing said falsely.") + "\n"


def write_peers(bench: Bench, args: argparse.Namespace) -> None:
    contenders = ["unflake", "whyflaky", "detect-test-pollution", "pytest-randomly"]
    sample = [place for place in generated_places(args.suites) if place.tests <= 60][: args.sample]
    parts = ["## Order dependence: unflake next to its peers\n", f"`bench/order.py` wrote this section. {', '.join(PEERS)}; the same trees on the same machine.\n"]
    parts.append("detect-test-pollution is told the tests in question and asked for each; pytest-randomly shuffles ten times.\n")
    for title, places in (("Real projects", real_places(args.projects)), (f"{len(sample)} generated suites", sample)):
        scores = {contender: score(bench, contender, places) for contender in contenders}
        parts.append(f"### {title}\n\n{write_table(scores)}\n")
    page = "\n".join(parts)
    print(page)
    replace_section(BENCH.parent / "docs/benchmarks.md", "bench/order.py", page, "Benchmarks")


# --- speed --------------------------------------------------------------------------------------


def quick_suite(size: int) -> Suite:
    """Quick tests in files of 50, with one polluter in the first file and one victim in the last."""
    files = {"state.py": "VALUE = []\n", "pytest.ini": "[pytest]\n"}
    count = size // 50
    for file in range(count):
        tests = [f"def test_{number}():\n    assert {number} + 1\n" for number in range(50)]
        if file == 2:
            tests[7] = "import state\ndef test_pollute():\n    state.VALUE.append(1)\n"
        if file == count - 3:
            tests[30] = "import state\ndef test_victim():\n    assert not state.VALUE\n"
        files[f"test_{file:02}.py"] = "".join(tests)
    victim, polluter = f"test_{count - 3:02}.py::test_victim", "test_02.py::test_pollute"
    truth = Truth("list", "victim", "victim", frozenset([frozenset([polluter])]), False, frozenset(), ["state.VALUE"])
    return Suite(f"quick-{size}", size, files, {victim: truth})


class Timing(NamedTuple):
    """The output of a command, its seconds of wall clock and processor, and the time of each `FOUND`."""

    out: str
    seconds: float
    spent: float
    told: List[float]


def time_command(bench: Bench, place: Place, command: List[str], **more: str) -> Timing:
    tree, output = bench.make_tree(place), bench.work / "out.txt"
    env = bench.make_environment(place, tree, more)
    before, since, told = os.times(), time.perf_counter(), []
    with output.open("w") as file:
        process = subprocess.Popen(command, cwd=tree, env=env, stdout=file, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        told = [time.perf_counter() - since for line in process.stderr if " FOUND " in line]
        process.wait()
    seconds, after = time.perf_counter() - since, os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return Timing(output.read_text(), seconds, spent, told)


def measure_pair(bench: Bench) -> List[str]:
    """The rows of one victim in a large suite; both commands run in turn, three times each."""
    suite = quick_suite(1000)
    place = Place(suite.name, suite.tests, suite, {}, suite.truth)
    victim = next(iter(suite.truth))
    python, folder = bench.make_venv([PYTEST]) / "python", bench.make_venv([PYTEST, *PEERS])
    mine = [str(bench.unflake), "order", "--python", str(python), "--format", "json", victim]
    theirs = [str(folder / "detect-test-pollution"), "--failing-test", victim, "--tests", "."]
    pairs, reports, peers, spent = [], [], [], []
    for _ in range(3):
        own = time_command(bench, place, mine)
        finding = json.loads(own.out)["findings"][0]
        assert finding["order"]["culprits"][0]["tests"] == ["test_02.py::test_pollute"], finding
        peer = time_command(bench, place, theirs, PATH=f"{folder}:{os.environ['PATH']}", PYTEST_ADDOPTS="-p no:randomly")
        assert "the polluting test is: test_02.py::test_pollute" in peer.out, peer.out
        pairs.append(own.told[0])
        reports.append(own.seconds)
        peers.append(peer.seconds)
        spent.append(peer.spent / own.spent)
    rows = []
    for what, times, goal in (("the pair is told", pairs, "≤ 25 s and ≥ 5"), ("the whole report: no other culprits, state, place, change", reports, "")):
        ratio = sorted(peer / own for peer, own in zip(peers, times))[1]
        rows.append(f"| 1,000 quick tests, `unflake order VICTIM`: {what} | {min(times):.1f} s | {min(peers):.1f} s | {ratio:.1f} | {goal} |")
    rows.append(f"| the same, processor time of the whole report | | | {sorted(spent)[1]:.1f} | |")
    return rows


def measure_speed(bench: Bench, args: argparse.Namespace) -> None:
    lines = ["## Order dependence: speed\n", "`bench/order.py --only speed` wrote this section: the fastest of three rounds, and the median of their ratios.\n"]
    lines += ["| Measured | unflake | detect-test-pollution | Ratio | Goal |", "|-|-:|-:|-:|-|", *measure_pair(bench)]
    big = next(place for place in generated_places(400) if place.tests >= 290 and len(place.truth) >= 5)
    python = bench.make_venv([PYTEST]) / "python"
    command = [str(bench.unflake), "order", "--python", str(python), "--format", "json", "--jobs", bench.jobs]
    timing = time_command(bench, big, command)
    found = {finding["id"] for finding in json.loads(timing.out)["findings"] if finding["verdict"] in ("victim", "brittle")}
    right = f"{len(found & set(big.truth))} of {len(big.truth)}"
    lines.append(f"| {big.tests} tests, detection: the last of the planted pairs is told ({right} found) | {max(timing.told):.1f} s | | | < 120 s |")
    lines.append(f"| the same, the whole report | {timing.seconds:.1f} s | | | |")
    page = "\n".join(lines)
    print(page)
    replace_section(BENCH.parent / "docs/benchmarks.md", "bench/order.py-speed", page, "Benchmarks")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    parser.add_argument("--python", help="the interpreter for the virtualenvs [default: Python 3.11]")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache/unflake/order-bench", help="a folder to work in")
    parser.add_argument("--source", default="https://github.com/{owner}/{name}", help="where projects are cloned from")
    parser.add_argument("--suites", type=int, default=60, help="how many generated suites [default: 60]")
    parser.add_argument("--projects", nargs="+", help="only these real projects")
    parser.add_argument("--sample", type=int, default=6, help="on how many of them the peers run [default: 6]")
    parser.add_argument("--jobs", default="1", help="VMs at once, for unflake")
    parser.add_argument("--only", nargs="+", default=["generated", "real", "peers", "speed"], choices=["generated", "real", "peers", "speed"])
    parser.add_argument("--again", help="forget the results of this contender")
    parser.add_argument("--write", type=Path, default=BENCH.parent / "docs/evaluation/order.md", help="the page of the evaluation")
    args = parser.parse_args()
    args.unflake, args.work = (args.unflake or find_unflake()).resolve(), args.work.resolve()
    bench = Bench(args)
    if args.again:
        bench.results = {key: result for key, result in bench.results.items() if key.split()[0] != args.again}
    if {"generated", "real"} & set(args.only):
        write_evaluation(bench, args)
    if "peers" in args.only:
        write_peers(bench, args)
    if "speed" in args.only:
        measure_speed(bench, args)


if __name__ == "__main__":
    main()

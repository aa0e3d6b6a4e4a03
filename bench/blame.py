"""Measures whether `unflake run` tells whose failure it is: changes with a known culprit, planted by a program.

Each case is a copy of a real project (`blame_projects.py`) with a git history: the base on `main`, a change
on `feature`. *Guilty* changes (`blame_plants.py`) make tests fail that do not fail at the base; *old flakes*
are in the base, and the change on top is harmless (`blame_harmless.py`). `unflake run` runs once on it; a run
in which no planted failure showed is not counted, and made again a few times. pytest-rerunfailures is asked
about the same cases.

    python3 bench/blame.py --kind guilty --cases 1000 --jobs 2
    python3 bench/blame.py --kind guilty --cases 150 --whole --seed 2
    python3 bench/blame.py --kind innocent --cases 300 --jobs 2
    python3 bench/blame.py --report --write docs/evaluation/blame.md
    python3 bench/blame.py --sample

Each case is one line in the results file, and is not run again. All is drawn from `--seed`. `--verify` runs
plain pytest instead of unflake, and tells whether the plants do what they say. It exits with 1 if a guilty
change was forgiven. It needs git, Python 3.12 and the standard library; sources and scratch trees go to the
folder `--work`.
"""

# ruff: noqa: E501 - commands have long lines

import argparse
import json
import math
import os
import queue
import random
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import blame_report
from blame_edits import Unplantable
from blame_harmless import document, draw_harmless
from blame_plants import Plan, draw_guilty, draw_old, truth
from blame_projects import SMALL, Home, Project, Trouble, call, read_projects

RUN_LIMIT, DRAWS, BASE_RUNS, MOST_TRIES = 900, 60, 5, 40
SAMPLE = [("guilty", 20), ("innocent", 10)]
SAMPLE_SEED = 17

RECORDER = '''
import json, os, sys
TARGET, SEEN = os.environ.pop("BLAME_RECORD"), {}
os.environ.pop("PYTHONPATH", None)
def pytest_collectreport(report):
    if report.failed: SEEN[report.nodeid] = ["failed"]
def pytest_runtest_logreport(report):
    if report.outcome in ("failed", "rerun"): SEEN.setdefault(report.nodeid, []).append(report.outcome)
def pytest_unconfigure():
    with open(TARGET, "w") as file: json.dump(SEEN, file)
'''


class Service(socketserver.BaseRequestHandler):
    """A service outside: it answers 1 in the share of cases that it is asked for."""

    def handle(self) -> None:
        share = float(self.request.recv(64).decode() or 0)
        self.request.sendall(b"1" if random.random() < share else b"0")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 64


class Setting(NamedTuple):
    """The surroundings of a plant: the way in which the change is committed, and what is known before."""

    has_remote: bool
    is_committed: bool
    is_stacked: bool
    is_ci: bool
    has_history: bool


class Built(NamedTuple):
    project: Project
    plan: Plan
    setting: Setting
    change: Tuple[str, str]


class Bench:
    """One worker: a scratch folder in which it builds and runs one case after the other."""

    def __init__(self, options: argparse.Namespace, home: Home, number: int, port: int) -> None:
        self.options, self.home = options, home
        # Another bench may be at work in the same folder.
        self.folder = options.work / "scratch" / f"{os.getpid()}-{number}"
        self.tree, self.ready = self.folder / "tree", self.folder / "ready"
        self.folder.mkdir(parents=True, exist_ok=True)
        plugin = self.folder / "plugin"
        plugin.mkdir(exist_ok=True)
        (plugin / "blame_recorder.py").write_text(RECORDER)
        self.env = {**home.env, "TMPDIR": str(self.folder / "tmp"), "BLAME_OUTSIDE": str(self.folder / "outside"), "BLAME_SERVICE": str(port)}

    def git(self, *words: str) -> str:
        return call(["git", *words], self.tree, self.env)

    # Building -------------------------------------------------------------------------------------------

    def build(self, kind: str, number: int) -> Built:
        """Draws and plants until the plant fits; the tree is then ready to be run at `feature`."""
        for draw in range(DRAWS):
            chance = random.Random(f"blame {self.options.seed} {kind} {number} {draw}")
            project = chance.choice(self.options.projects)
            try:
                return self.plant(kind, project, chance)
            except Unplantable:
                continue
        raise Trouble(f"no plant fits after {DRAWS} draws")

    def plant(self, kind: str, project: Project, chance: random.Random) -> Built:
        survey = self.home.surveys[project.name]
        plan = (draw_guilty if kind == "guilty" else draw_old)(project, survey, chance, self.options.family)
        setting = Setting(*(chance.random() < share for share in (0.5, 0.8, 0.25, 0.3, 0.5 if kind == "innocent" else 0.25)))
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.home.source(project), self.tree, symlinks=True)
        for edit in plan.base:
            edit(self.tree)
        if plan.base:
            self.commit("the base")
        if setting.has_remote:
            self.git("update-ref", "refs/remotes/origin/main", "main")
            self.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        change, edits = ("planted", "function"), plan.change
        if kind == "innocent":
            name, near, edits = draw_harmless(survey, plan, chance, self.tree)
            change = (name, near)
        if setting.has_history and not self.options.verify:
            self.record_history(project, plan, setting)
        self.git("checkout", "--quiet", "-b", "feature")
        if setting.is_stacked:
            document(self.tree)(self.tree)
            self.commit("a note")
        for edit in edits:
            edit(self.tree)
        if not self.git("status", "--porcelain").strip():
            raise Unplantable("the change changes nothing")
        if setting.is_committed:
            self.commit("the change")
        self.keep()
        return Built(project, plan, setting, change)

    def commit(self, message: str) -> None:
        self.git("add", "--all", "--force", "--", ".", ":!.unflake")
        self.git("commit", "--quiet", "-m", message)

    def keep(self) -> None:
        shutil.rmtree(self.ready, ignore_errors=True)
        self.tree.rename(self.ready)

    def record_history(self, project: Project, plan: Plan, setting: Setting) -> None:
        """Runs at the base that a team's history would hold; what they leave in the tree is removed."""
        for _ in range(BASE_RUNS):
            self.empty("tmp")
            self.unflake(project, plan, setting)
            self.git("clean", "--quiet", "-ffdx", "-e", ".unflake")
            self.git("checkout", "--quiet", "--force", "main")

    # Running --------------------------------------------------------------------------------------------

    def fresh(self) -> None:
        """The tree as it was built, and an empty folder for temporary files."""
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.ready, self.tree, symlinks=True)
        self.empty("tmp")

    def empty(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / name).mkdir()

    def args(self, project: Project, plan: Plan) -> List[str]:
        files = [] if self.options.whole else plan.files
        return [*project.options.split(), *(files or [project.suite])]

    def run(self, command: List[str], env: Dict[str, str]) -> Tuple[int, str, str, float]:
        start, outputs = time.monotonic(), [self.folder / "out", self.folder / "err"]
        with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            process = subprocess.Popen(command, cwd=self.tree, env=env, start_new_session=True, **streams)
            try:
                code = process.wait(RUN_LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Trouble(f"`{Path(command[0]).name}` was still running after {RUN_LIMIT} s") from None
        texts = [output.read_text(errors="replace") for output in outputs]
        return code, texts[0], texts[1], time.monotonic() - start

    def unflake(self, project: Project, plan: Plan, setting: Setting, *more: str) -> Dict[str, Any]:
        python = self.home.interpreter(project, self.tree, self.folder / "venv")
        env = {**self.env, **({"CI": "true"} if setting.is_ci else {})}
        command = [str(self.options.unflake), "run", "--python", str(python), "--format", "json", *more, "--", *self.args(project, plan)]
        code, out, err, seconds = self.run(command, env)
        if not out.startswith("{"):
            raise Trouble(f"unflake gave no report (exit {code}): {err[-2000:]}")
        report: Dict[str, Any] = json.loads(out)
        report.update(exit_code=code, wall=seconds)
        return report

    def pytest(self, project: Project, args: List[str], reruns: int = 0) -> Tuple[int, Dict[str, List[str]], str]:
        """Plain pytest, or pytest-rerunfailures: the exit code and what failed, by test."""
        python = self.home.interpreter(project, self.tree, self.folder / "venv")
        record = self.folder / "record.json"
        record.write_text("{}")
        paths = [str(self.folder / "plugin"), *([str(self.home.reruns)] if reruns else [])]
        env = {**self.env, "PYTHONPATH": os.pathsep.join(paths), "BLAME_RECORD": str(record)}
        words = ["-p", "blame_recorder", "-p", "no:cacheprovider", "-q"]
        words += ["--reruns", str(reruns)] if reruns else []
        code, out, err, _ = self.run([str(python), "-m", "pytest", *words, *args], env)
        if code not in (0, 1, 2):
            raise Trouble(f"pytest ended with {code}: {out[-800:]}{err[-800:]}")
        seen: Dict[str, List[str]] = json.loads(record.read_text())
        return code, seen, out

    def measure(self, kind: str, number: int) -> Dict[str, Any]:
        """One case: what was planted, what unflake said of it, what pytest-rerunfailures made of it."""
        self.empty("outside")
        built = self.build(kind, number)
        project, plan, setting = built.project, built.plan, built.setting
        row: Dict[str, Any] = {"kind_of_case": kind, "number": number, "seed": self.options.seed, "whole": self.options.whole or not plan.files}
        row.update(project=project.name, change=built.change[0], near=built.change[1], setting=setting._asdict(), planted=truth(plan))
        most = 2 if plan.rate == 1 else min(MOST_TRIES, math.ceil(3 / plan.rate) + 1)
        for attempt in range(1, most + 1):
            self.fresh()
            report = self.unflake(project, plan, setting)
            row.update(tries=attempt, **summarise(report, plan))
            if row["shown"]:
                break
        if row["shown"] and self.options.timing and number % self.options.timing == 0:
            self.fresh()
            bare = self.unflake(project, plan, setting, "--intersect=never", "--check-base=never")
            row["bare_seconds"] = bare["wall"] if bare["findings"] else None
        if row["shown"] and not self.options.no_reruns:
            row["reruns"] = self.ask_reruns(project, plan, min(most, 6))
        return row

    def ask_reruns(self, project: Project, plan: Plan, most: int) -> Optional[Dict[str, Any]]:
        for _ in range(most):
            self.fresh()
            code, seen, _ = self.pytest(project, self.args(project, plan), reruns=2)
            if seen:
                return {"green": code == 0, "exit_code": code, "tests": len(seen)}
        return None

    def check(self, kind: str, number: int) -> Dict[str, Any]:
        """Plain pytest at the base and with the change, and each failed test alone: does the plant do what it says?"""
        self.empty("outside")
        built = self.build(kind, number)
        project, plan = built.project, built.plan
        args = self.args(project, plan)
        row: Dict[str, Any] = {"kind_of_case": kind, "number": number, "project": project.name, "planted": truth(plan), "change": built.change}
        most = 1 if plan.rate == 1 else min(12, math.ceil(3 / plan.rate) + 1)
        failed: Dict[str, List[str]] = {}
        for _ in range(most):
            self.fresh()
            code, failed, said = self.pytest(project, args)
            if failed:
                break
        row.update(exit_code=code, shown=bool(failed), failed=sorted(failed)[:20], expected=bool(set(failed) & set(plan.victims)), said=said[-1500:])
        alone: List[int] = []
        for test in sorted(failed)[:1]:
            while len(alone) < (2 if plan.rate == 1 else 8) and 0 not in alone:
                self.fresh()
                alone.append(self.pytest(project, [*project.options.split(), test])[0])
        row["alone"] = alone
        self.fresh()
        if not built.setting.is_committed:
            self.git("stash", "--quiet", "--include-untracked")
        self.git("checkout", "--quiet", "--force", "main")
        base = args if all((self.tree / word).exists() for word in plan.files) else [project.suite]
        row["base_failed"] = sorted(self.pytest(project, base)[1])[:20]
        return row


def summarise(report: Dict[str, Any], plan: Plan) -> Dict[str, Any]:
    """The part of a report that is kept."""
    findings = []
    for finding in report["findings"]:
        whose = finding.get("whose") or {}
        one = {name: finding.get(name) for name in ("id", "verdict", "kind")}
        one.update({name: whose.get(name) for name in ("answer", "because")})
        one["is_expected"] = finding["id"] in plan.victims
        if one["answer"] == "not-known":
            one["sentence"] = whose.get("sentence")
        findings.append(one)
    kept: Dict[str, Any] = {"shown": bool(findings), "exit_code": report["exit_code"], "findings": findings[:30]}
    kept.update(count=len(findings), ended=report["ended"], seconds=round(report["wall"], 2), too_many=report["too_many_failures"])
    kept["broken_collection"] = bool(report["collection_errors"])
    return kept


def numbers_to_do(options: argparse.Namespace, kind: str, count: int, results: Path) -> List[int]:
    """Cases that are not in the results yet, or could not be run."""
    done = set()
    for row in blame_report.read_rows(results):
        wanted = (kind, options.seed, options.whole)
        if (row["kind_of_case"], row["seed"], row["asked_whole"]) == wanted and "trouble" not in row:
            done.add(row["number"])
    return [number for number in range(count) if number not in done]


def run_cases(options: argparse.Namespace, home: Home, jobs: List[Tuple[str, int]]) -> List[Dict[str, Any]]:
    """All cases, by several workers; each row is on the disk as soon as it is known."""
    waiting: Any = queue.Queue()
    for job in jobs:
        waiting.put(job)
    rows: List[Dict[str, Any]] = []
    lock, server = threading.Lock(), Server(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def work(place: int) -> None:
        bench = Bench(options, home, place, server.server_address[1])
        try:
            work_in(bench)
        finally:
            shutil.rmtree(bench.folder, ignore_errors=True)

    def work_in(bench: Bench) -> None:
        while True:
            try:
                kind, number = waiting.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            try:
                row = (bench.check if options.verify else bench.measure)(kind, number)
            except (Trouble, OSError, KeyError, ValueError) as error:
                row = {"kind_of_case": kind, "number": number, "seed": options.seed, "trouble": f"{type(error).__name__}: {error}"}
            row.update(asked_whole=options.whole, build=options.build, took=round(time.monotonic() - start, 1))
            with lock:
                rows.append(row)
                if options.results:
                    with options.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                print(blame_report.one_line(row), file=sys.stderr, flush=True)

    workers = [threading.Thread(target=work, args=(place,)) for place in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    server.shutdown()
    return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unflake-blame"
    parser.add_argument("--unflake", type=Path, default=Path("target/release/unflake"), help="the binary")
    parser.add_argument("--build", default="", help="the commit that the binary was built from, kept with each case")
    parser.add_argument("--work", type=Path, default=cache, help="the folder for sources, environments and scratch trees")
    parser.add_argument("--results", type=Path, help="the file with one line per case; default: results.jsonl in --work")
    parser.add_argument("--kind", choices=["guilty", "innocent"], action="append", help="default: both")
    parser.add_argument("--cases", type=int, default=100, help="so many of each kind, from number 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="run whole suites, not only the files that show it")
    parser.add_argument("--only", action="append", help="only the project of this name; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="cases at once")
    parser.add_argument("--timing", type=int, default=5, help="of every so many cases, measure the run without the answer too; 0: none")
    parser.add_argument("--no-reruns", action="store_true", help="leave pytest-rerunfailures out")
    parser.add_argument("--sample", action="store_true", help="30 cases on small projects, for CI")
    parser.add_argument("--verify", action="store_true", help="check the plants by plain pytest; nothing is kept")
    parser.add_argument("--family", help="with --verify: only this family of plants")
    parser.add_argument("--report", action="store_true", help="print the tables of the results file")
    parser.add_argument("--write", type=Path, help="with --report: replace the tables in this page")
    options = parser.parse_args()
    if options.family and not options.verify:
        parser.error("--family is for --verify: what is measured is drawn from all families")
    options.work, options.unflake = options.work.resolve(), options.unflake.resolve()
    options.results = options.results or options.work / "results.jsonl"
    return options


def main() -> int:
    options = parse()
    if options.report:
        return blame_report.report(options.results, options.write)
    wanted = options.only or (SMALL if options.sample else [project.name for project in read_projects()])
    options.projects = [project for project in read_projects() if project.name in wanted]
    home = Home(options.work)
    home.prepare(options.projects)
    if options.sample:
        options.seed, options.timing, options.no_reruns, options.results = SAMPLE_SEED, 0, True, None
        jobs = [(kind, number) for kind, count in SAMPLE for number in range(count)]
    elif options.verify:
        options.results = None
        jobs = [(kind, number) for kind in options.kind or ["guilty", "innocent"] for number in range(options.cases)]
    else:
        kinds = options.kind or ["guilty", "innocent"]
        jobs = [(kind, number) for kind in kinds for number in numbers_to_do(options, kind, options.cases, options.results)]
    rows = run_cases(options, home, jobs)
    if options.verify:
        print(blame_report.verification(rows))
        return 0
    print(blame_report.tables(rows if options.sample else blame_report.read_rows(options.results)))
    return blame_report.exit_code(rows, is_sample=options.sample)


if __name__ == "__main__":
    sys.exit(main())

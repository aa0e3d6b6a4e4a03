"""Measures how often a commit leaves a test file alone: how far INTERSECT reaches (Eloussi 2015, 4.4).

For each of the last commits of real projects, along the first parents, it checks the commit out, runs every
test file by itself, watched, and asks whether what the file used is disjoint from what the commit changed:
by blocks of code, as unflake does it, and by whole files. `crates/driver/examples/survey.rs` does this part.

It also checks the answers. The project's suite runs plainly at each commit: a test that ends otherwise than
at the commit before must not be in a file that is called disjoint. And whatever the commit changed is broken
on purpose (`sabotage.py`), and the files that are called disjoint run once more: none may notice.

    cargo build --release --example survey -p unflake-driver
    python3 bench/applicability.py --survey target/release/examples/survey --write docs/evaluation

What was found for a commit is kept in the folder `--work` and not asked again. It exits with 1 if an answer
was wrong or a project could not be measured. It needs git and the standard library.
"""

# ruff: noqa: E501 - the table of projects has long lines

import argparse
import concurrent.futures
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import boxplot
import sabotage

LIMIT, RARE = 900, 10  # seconds for one command; a file that is in fewer commits is left out
ALWAYS = "may depend on it "
Outcomes = Dict[str, str]
Found = Dict[str, Any]

RECORDER = '''
import json, os, sys
TARGET, OUTCOMES = os.environ.pop("APPLICABILITY_RECORD"), {}
os.environ.pop("PYTHONPATH", None)
sys.path.remove(os.path.dirname(__file__))  # Tests see the path as without this plugin.
def pytest_collectreport(report):
    if report.failed: OUTCOMES[report.nodeid] = "not collected"
def pytest_runtest_logreport(report):
    if report.outcome != "passed" or report.when == "call":
        if OUTCOMES.get(report.nodeid) != "failed": OUTCOMES[report.nodeid] = report.outcome
def pytest_unconfigure():
    with open(TARGET, "w") as file: json.dump(OUTCOMES, file)
'''

# Repository, newest commit, Python, what its tests need, arguments for pytest.
PROJECTS = """
mahmoud/boltons          | 967864f89791509f9eb36b22b4579d36b72a6df2 | 3.12 | pytest==8.4.2 | tests
tkem/cachetools          | 28d4506f2a49d781ffbcecb095fa7aba5bb80aff | 3.13 | pytest==8.4.2 | tests
python-hyper/h11         | 62c5068c971579d61fa1b55373390e12f25fd856 | 3.11 | pytest==8.4.2 | h11
theskumar/python-dotenv  | bca6644d9aedbe287b792b756b3ae3d650cd0d3a | 3.12 | pytest==8.4.2 click ipython sh | tests
jd/tenacity              | c650fb45204635f07910948d5fc59a8c551ffdda | 3.11 | pytest==8.4.2 tornado typeguard trio | tests
"""


class Trouble(Exception):
    """What keeps a project or a commit from being measured."""


class Project(NamedTuple):
    repository: str
    head: str
    python: str
    requires: str
    args: str

    @property
    def name(self) -> str:
        return self.repository.split("/")[1]


class Bench:
    """One project's checkout, environment and results under the work folder."""

    def __init__(self, project: Project, work: Path, survey: Path) -> None:
        self.project, self.survey = project, survey
        self.home = work / project.name
        self.tree, self.results = self.home / "tree", self.home / "results"
        self.python = self.home / "venv/bin/python"
        dropped = ("PYTEST_", "PYTHON", "UNFLAKE_", "GITHUB_", "CI")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.env.update(PYTHONHASHSEED="0", VIRTUAL_ENV=str(self.home / "venv"))
        self.env["PATH"] = f"{self.python.parent}{os.pathsep}{self.env['PATH']}"

    def prepare(self, source: str) -> None:
        """Clones and installs, unless an earlier call did so for the same wishes."""
        project, stamp = self.project, self.home / "prepared.json"
        wishes = json.dumps([project.repository, project.python, project.requires])
        if stamp.exists() and stamp.read_text() == wishes:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        self.results.mkdir(parents=True)
        (self.home / "plugin").mkdir()
        (self.home / "plugin/applicability_recorder.py").write_text(RECORDER)
        owner, name = project.repository.split("/")
        self.call(["git", "clone", "--quiet", source.format(owner=owner, name=name), str(self.tree)], self.home)
        self.call(["git", "checkout", "--quiet", project.head], self.tree)
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        pythons = [*map(str, pyenv.glob(f"{project.python}.*/bin/python")), f"python{project.python}"]
        self.call([pythons[0], "-m", "venv", str(self.home / "venv")], self.home)
        self.install()
        stamp.write_text(wishes)

    def install(self) -> None:
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        self.call([*pip, "-e", str(self.tree), *self.project.requires.split()], self.home)

    def call(self, command: List[str], folder: Path, **more: str) -> str:
        """Runs a command and returns its standard output; raises if it does not end well."""
        with (self.home / "stderr.txt").open("wb+") as err:
            env = {**self.env, **more}
            streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": err}
            try:
                done = subprocess.run(command, cwd=folder, env=env, timeout=LIMIT, **streams)
            except subprocess.TimeoutExpired:
                raise Trouble(f"`{Path(command[0]).name}` was still running after {LIMIT} s") from None
            err.seek(0)
            said = err.read().decode(errors="replace")
        if done.returncode:
            raise Trouble(f"`{Path(command[0]).name}` ended with {done.returncode}: {said[-1500:]}")
        return done.stdout.decode(errors="replace")

    def commits(self, count: int) -> List[str]:
        words = ["git", "rev-list", "--first-parent", f"--max-count={count}", self.project.head]
        return self.call(words, self.tree).split()

    def check_out(self, commit: str) -> None:
        self.call(["git", "checkout", "--quiet", "--force", commit], self.tree)
        self.call(["git", "clean", "--quiet", "-fd"], self.tree)
        for cache in list(self.tree.rglob("__pycache__")):
            shutil.rmtree(cache, ignore_errors=True)  # A cached file of the same second would be believed.

    def look_at(self, commit: str) -> Found:
        """The findings for a commit, from an earlier run if there was one."""
        kept = self.results / f"{commit}.json"
        if kept.exists():
            found: Found = json.loads(kept.read_text())
            return found
        since = time.monotonic()
        self.check_out(commit)
        try:
            found = self.ask(commit)
        except Trouble:
            try:
                # Perhaps it is built in another way than the newest commit.
                self.install()
                found = self.ask(commit)
            except Trouble as trouble:
                found = {"trouble": str(trouble)}
        found.update(commit=commit, seconds=round(time.monotonic() - since, 1))
        kept.write_text(json.dumps(found, indent=1))
        print(f"{self.project.name} {commit[:10]} {found['seconds']} s {found.get('trouble', '')[:200]}", file=sys.stderr)
        return found

    def ask(self, commit: str) -> Found:
        args = self.project.args.split()
        lines = self.call([str(self.survey), str(self.python), "HEAD^", *args], self.tree).splitlines()
        rows = {row["file"]: row for row in map(json.loads, lines)}
        if not rows:
            raise Trouble("no test file was surveyed")
        changed = self.call(["git", "diff", "--name-only", "--no-renames", "HEAD^", "HEAD"], self.tree)
        found: Found = {"files": list(rows.values()), "changed": changed.splitlines()}
        found["outcomes"] = self.run_plain(args)
        found["sabotage"] = self.check_by_sabotage(commit, rows, found["outcomes"])
        return found

    def run_plain(self, args: List[str]) -> Outcomes:
        record = self.home / "record.json"
        record.write_text("{}")
        env = {**self.env, "APPLICABILITY_RECORD": str(record), "PYTHONPATH": str(self.home / "plugin")}
        options = ["-p", "applicability_recorder", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        command = [str(self.python.parent / "pytest"), *options, *args]
        quiet: Dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run(command, cwd=self.tree, env=env, timeout=LIMIT, **quiet)
        outcomes: Outcomes = json.loads(record.read_text())
        return outcomes

    def check_by_sabotage(self, commit: str, rows: Dict[str, Any], outcomes: Outcomes) -> Found:
        """Runs the files that are called disjoint with all changes broken; tells which tests notice."""
        disjoint = [file for file, row in rows.items() if row["block"]["disjoint"]]
        if not disjoint:
            return {"files": 0, "tests": 0, "noticed": []}
        broken = sabotage.break_changes(self.tree, "HEAD^")
        noticed = differences(outcomes, self.run_plain(disjoint), disjoint)
        if noticed:
            # It may be that they depend on other files of the suite: those files alone will tell.
            files = sorted({test.split("::")[0] for test in noticed})
            ends = {file: self.run_plain([file]) for file in files}
            self.check_out(commit)
            noticed = [test for file in files for test in differences(self.run_plain([file]), ends[file], [file])]
        self.check_out(commit)
        tests = sum(test.split("::")[0] in disjoint for test in outcomes)
        return {"files": len(disjoint), "broken": broken, "tests": tests, "noticed": noticed}


def differences(before: Outcomes, after: Outcomes, files: List[str]) -> List[str]:
    """The tests of these files that do not end alike; a parameter may have another name in each run."""
    names = [name for name in {**before, **after} if name.split("::")[0] in files]
    return sorted(name for name in names if before.get(name) != after.get(name))


# --- counting -----------------------------------------------------------------------------------


class Row(NamedTuple):
    """The findings in one project, newest commit first."""

    project: Project
    head: str
    founds: List[Found]

    def pairs(self) -> Iterator[Tuple[Found, Dict[str, Any]]]:
        for found in self.founds:
            for file in found.get("files", []):
                yield found, file


Question = Callable[[Dict[str, Any]], bool]


def by_block(file: Dict[str, Any]) -> bool:
    return bool(file["block"]["disjoint"])


def by_file(file: Dict[str, Any]) -> bool:
    return bool(file["whole"]["disjoint"])


def without_always(file: Dict[str, Any]) -> bool:
    """As if no file were on the list of those that cannot be ruled out. Their readers are not known then."""
    touches = [touch for touch in file["block"]["touches"] if not touch.startswith(ALWAYS)]
    return not touches and not file["block"]["unknowns"]


def shares(row: Row, question: Question, only_code: bool = False) -> List[float]:
    """For each test file the per cent of the commits for which the answer is yes."""
    answers: Dict[str, List[bool]] = {}
    for found, file in row.pairs():
        if not only_code or is_code(found):
            answers.setdefault(file["file"], []).append(question(file))
    rare = RARE if not only_code else 1
    return [100 * sum(each) / len(each) for each in answers.values() if len(each) >= rare]


def is_code(found: Found) -> bool:
    return any(name.endswith(".py") for name in found["changed"])


def why(file: Dict[str, Any]) -> str:
    """The strongest reason for which a test file is not disjoint."""
    touches, unknowns = file["block"]["touches"], file["block"]["unknowns"]
    seen = [touch for touch in touches if not touch.startswith(ALWAYS)]
    own = [touch for touch in seen if touch.endswith(" " + file["file"])]
    if own:
        return "the commit changed the test file itself"
    for word, reason in REASONS.items():
        if any(touch.startswith(word) for touch in seen):
            return reason
    if seen:
        return "it read, looked for or listed what changed"
    return "only files that cannot be ruled out" if touches else f"cannot tell: {unknowns[0].split('(')[0]}"


REASONS = {
    "ran ": "a changed function ran",
    "imported ": "module-level code of an imported file changed",
    "used a copy ": "a copy of a changed file was used",
}


def changed_outcomes(row: Row) -> Iterator[Tuple[str, str, bool]]:
    """Tests that ended otherwise than at the commit before: commit, test, and whether its file is called disjoint."""
    for found, before in zip(row.founds, row.founds[1:]):
        if "files" not in found or "files" not in before:
            continue
        disjoint = {file["file"] for file in found["files"] if by_block(file)}
        for test, outcome in found["outcomes"].items():
            if before["outcomes"].get(test, outcome) != outcome:
                yield found["commit"], test, test.split("::")[0] in disjoint


def wrong_answers(row: Row) -> List[str]:
    lines = [f"{row.project.name} {commit[:10]}: {test} changed its outcome" for commit, test, is_wrong in changed_outcomes(row) if is_wrong]
    for found in row.founds:
        for test in found.get("sabotage", {}).get("noticed", []):
            lines.append(f"{row.project.name} {found['commit'][:10]}: {test} noticed the sabotage")
    return lines


# --- telling ------------------------------------------------------------------------------------

PAGE = """# Applicability: how often a commit leaves a test file alone

INTERSECT can say that a test which fails every time is flaky, if its run went through nothing that changed.
How often is that so? As Eloussi did for Java (2015, 4.4), this page takes the last commits of real projects
and asks for each commit and each test file whether what the file uses is disjoint from what the commit changed.
`bench/applicability.py` says how. To repeat it:

    cargo build --release --example survey -p unflake-driver
    python3 bench/applicability.py --commits {commits} --survey target/release/examples/survey --write docs/evaluation

Every commit along the first parents counts, whatever it changed, against its first parent. Each test file ran
by itself, watched. A test file's share is the per cent of the commits for which it is disjoint; files that were
in fewer than {rare} commits are left out. "Blocks" is what unflake does: a changed function counts if it ran, other
changed code if its file was imported. "Whole files" counts any use of a changed file, as the thesis does with
classes. Run on {date}.

![Box plots of the shares, by project](applicability.svg)

Whiskers mark the 10th and the 90th percentile, the red line the median; each dot is a test file. In the thesis
all medians but one are above 70 % in projects with flaky tests, and above 80 % in others, at class level.

## Shares

{shares}

The last three columns are medians at block level: over the commits that changed Python files, with the others
left out; as if no file were on the list of those that cannot be ruled out (`pyproject.toml`, workflows, lock
files and the like), which is no safe thing to do; and the per cent of all pairs of a commit and a test file
for which nothing changed was seen in use but something could not be watched.

## What a test file meets

Per cent of all pairs of a commit and a test file, each with the strongest reason.

{reasons}

The files that cannot be ruled out, by the number of commits that changed them: {always}.

## Were the answers right?

{checks}

{wrong}

## What is to be learned

{lessons}
{troubles}"""

LESSONS = """\
- The shares depend on the project more than on the method. In a library of independent modules a test file
  imports what it tests, and most commits leave it alone. Where every test file imports the whole package, one
  changed line of module-level code reaches all of them: those medians are far below the thesis's, whose
  projects are many times larger.
- Blocks are worth most in just these small packages: a change inside a function counts only for the files that
  ran it, and the median rises by up to twice the share by whole files. In a library of independent modules
  they change next to nothing, because whoever imports a module runs most of it.
- Files that cannot be ruled out (workflows, `tox.ini`, `setup.py`) cost the second most. A project that knows
  better can cut the list with `[intersect] never` in `unflake.toml`; the column without the list shows the
  most that this can bring.
- What could not be watched hardly matters here. Suites that start many programs would say otherwise."""


def write_rows(head: str, lines: List[str]) -> str:
    rule = "|".join(["---"] + ["--:"] * head.count("|"))
    return "\n".join(f"| {line} |" for line in [head, rule, *lines])


def write_shares(rows: List[Row]) -> str:
    lines = []
    for row in rows:
        good = [found for found in row.founds if "files" in found]
        pairs = [file for _, file in row.pairs()]
        untold = sum(not file["block"]["touches"] and bool(file["block"]["unknowns"]) for file in pairs)
        cells = [
            f"{row.project.repository} at {row.head[:10]}",
            row.project.python,
            f"{len(good)} of {len(row.founds)}",
            f"{sum(map(is_code, good))}",
            f"{len(shares(row, by_block))}",
            f"{median(shares(row, by_file)):.0f}",
            f"**{median(shares(row, by_block)):.0f}**",
            f"{median(shares(row, by_block, only_code=True)):.0f}",
            f"{median(shares(row, without_always)):.0f}",
            f"{100 * untold / len(pairs):.1f}",
        ]
        lines.append(" | ".join(cells))
    head = (
        "project | Python | commits surveyed | of them with Python files | test files | median by whole files, %"
        " | median by blocks, % | code commits only | without the list | cannot tell, %"
    )
    return write_rows(head, lines)


def write_reasons(rows: List[Row]) -> str:
    counts = [Counter("disjoint" if by_block(file) else why(file) for _, file in row.pairs()) for row in rows]
    together: Counter[str] = sum(counts, Counter())
    lines = []
    for reason, _ in together.most_common():
        cells = [f"{100 * count[reason] / sum(count.values()):.1f}" for count in counts]
        lines.append(" | ".join([reason, *cells]))
    return write_rows(" | ".join(["", *(row.project.name for row in rows)]), lines)


def write_always(rows: List[Row]) -> str:
    names: Counter[str] = Counter()
    commits = 0
    for row in rows:
        for found in row.founds:
            touches = {touch for file in found.get("files", []) for touch in file["block"]["touches"]}
            files = {touch[len(ALWAYS) :] for touch in touches if touch.startswith(ALWAYS)}
            names.update({"workflows" if name.startswith(".github/") else name.split("/")[-1] for name in files})
            commits += bool(files)
    listed = ", ".join(f"`{name}` {count}" for name, count in names.most_common(8))
    return f"{listed}; {commits} commits changed at least one"


def write_checks(rows: List[Row]) -> str:
    lines = []
    for row in rows:
        checks = [found["sabotage"] for found in row.founds if "sabotage" in found]
        outcomes = list(changed_outcomes(row))
        cells = [
            row.project.name,
            f"{sum(check['files'] for check in checks):,}",
            f"{sum(check['tests'] for check in checks):,}",
            f"{sum(len(check['noticed']) for check in checks)}",
            f"{len(outcomes)}",
            f"{sum(is_wrong for _, _, is_wrong in outcomes)}",
        ]
        lines.append(" | ".join(cells))
    head = (
        "project | disjoint files run again with all changes broken | tests in them | that noticed"
        " | tests with another outcome than at the commit before | of them in files called disjoint"
    )
    return write_rows(head, lines)


def write_page(rows: List[Row], commits: int) -> str:
    wrong = [line for row in rows for line in wrong_answers(row)]
    troubles = [
        f"{row.project.name} {found['commit'][:10]}: {found['trouble'].splitlines()[0][:160]}"
        for row in rows
        for found in row.founds
        if "trouble" in found
    ]
    listed = "\n".join(f"- {line}" for line in troubles)
    return PAGE.format(
        commits=commits,
        rare=RARE,
        date=datetime.date.today(),
        shares=write_shares(rows),
        reasons=write_reasons(rows),
        always=write_always(rows),
        checks=write_checks(rows),
        wrong="\n".join(f"- {line}" for line in wrong) or "No answer was found to be wrong.",
        lessons=LESSONS,
        troubles=f"\n## Commits that could not be surveyed\n\n{listed}\n" if troubles else "",
    )


def write_picture(rows: List[Row]) -> str:
    groups = []
    for row in rows:
        left, right = shares(row, by_file), shares(row, by_block)
        groups.append(boxplot.Group(row.project.name, f"{len(right)} test files", left, right))
    title = "Commits whose changes a test file does not use"
    return boxplot.draw(title, "commits, per test file", ("by whole files", "by blocks (unflake)"), groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cache = Path.home() / ".cache/unflake/applicability"
    parser.add_argument("--survey", type=Path, default=Path("target/release/examples/survey"), help="the binary")
    parser.add_argument("--work", type=Path, default=cache, help="the folder for checkouts and results")
    parser.add_argument("--source", default="https://github.com/{owner}/{name}", help="where to clone from")
    parser.add_argument("--commits", type=int, default=50, help="commits of each project [default: 50]")
    parser.add_argument("--jobs", type=int, default=2, help="projects at a time [default: 2]")
    parser.add_argument("--only", action="append", help="only the project of this name; may be repeated")
    parser.add_argument("--write", type=Path, help="write the page and the picture into this folder")
    options = parser.parse_args()

    def measure(project: Project) -> Row:
        bench = Bench(project, options.work.resolve(), options.survey.resolve())
        bench.prepare(options.source)
        commits = bench.commits(options.commits)
        return Row(project, commits[0], [bench.look_at(commit) for commit in commits])

    projects = [Project(*(part.strip() for part in line.split("|"))) for line in PROJECTS.strip().splitlines()]
    projects = [project for project in projects if project.name in (options.only or [project.name])]
    rows, is_whole = [], True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for project, future in [(project, pool.submit(measure, project)) for project in projects]:
            try:
                rows.append(future.result())
            except Trouble as trouble:
                print(f"{project.name} could not be measured: {trouble}", file=sys.stderr)
                is_whole = False
    page = write_page(rows, options.commits)
    print(page)
    if options.write:
        (options.write / "applicability.md").write_text(page)
        (options.write / "applicability.svg").write_text(write_picture(rows))
    return 0 if is_whole and not any(map(wrong_answers, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Runs `unflake nio` on real projects and compares what it says with what is known about them.

The projects of `bench/cases.json` have a known truth: which tests fail when they are run again, which only
look like it, and what those are. The other suites have none; every finding in them was looked at by hand,
and what that showed stands beside them in `bench/nio_suites.json`. A finding that neither file knows is an
error.

    cargo build --release
    python3 bench/nio_evaluation.py --write docs/evaluation/nio.md

It clones the projects, makes virtualenvs and keeps results in the folder `--work`: what is kept there is not
run again. It exits with 1 if a known test is missed or misnamed, or a finding is not known to be right.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import find_unflake

BENCH = Path(__file__).resolve().parent
PYTEST = "pytest==8.3.5"
LIMIT = 1800  # seconds for one project


class Project(NamedTuple):
    """A project at a commit, and what its tests need."""

    repository: str
    commit: str
    python: str
    requirements: List[str]
    pythonpath: str
    args: List[str]

    @property
    def name(self) -> str:
        return self.repository.split("/")[1]


class Result(NamedTuple):
    """The answer of `unflake nio` about a project."""

    project: Project
    tests: int
    seconds: float
    findings: Dict[str, Dict[str, Any]]


# --- running ------------------------------------------------------------------------------------


def read_data(name: str) -> Dict[str, Any]:
    data: Dict[str, Any] = json.loads((BENCH / name).read_text())
    return data


def to_project(case: Dict[str, Any]) -> Project:
    return Project(*(case[field] for field in Project._fields))


class Evaluation:
    """Checks projects out, installs what they need, and runs unflake in them."""

    def __init__(self, unflake: Path, work: Path, source: str) -> None:
        self.unflake, self.work, self.source = unflake, work, source

    def check_out(self, project: Project) -> Path:
        tree = self.work / "trees" / project.name
        shutil.rmtree(tree, ignore_errors=True)
        owner, name = project.repository.split("/")
        source = self.source.format(owner=owner, name=name)
        call(["git", "clone", "--quiet", source, str(tree)])
        call(["git", "-C", str(tree), "checkout", "--quiet", "--detach", project.commit])
        return tree

    def make_venv(self, project: Project) -> Path:
        """One virtualenv for all projects that need the same."""
        wishes = sorted([PYTEST, *project.requirements])
        words = [re.sub(r"\W+", "-", wish) for wish in [project.python, *wishes]]
        folder = self.work / "venvs" / "_".join(words)[:200]
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
            pythons = [*map(str, pyenv.glob(f"{project.python}.*/bin/python")), f"python{project.python}"]
            call([pythons[0], "-m", "venv", str(folder)])
            pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
            call([*pip, "install", *wishes])
            (folder / "ready").touch()
        return folder

    def run_once(self, project: Project, mode: str) -> Result:
        """Runs unflake, or takes the result of an earlier run that was broken off."""
        kept = self.work / "results" / mode / f"{project.name}-{project.commit[:10]}.json"
        if not kept.exists():
            result = self.run(project, ["--mode", mode])
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps([result.tests, result.seconds, result.findings]))
        return Result(project, *json.loads(kept.read_text()))

    def run(self, project: Project, options: List[str]) -> Result:
        tree, venv = self.check_out(project), self.make_venv(project)
        dropped = ("PYTEST_", "PYTHON", "GITHUB_", "CI")
        env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        env["PYTHONPATH"] = str(tree / project.pythonpath)
        command = [str(self.unflake), "nio", "--no-record", "--python", str(venv), "--timeout", "300"]
        command += [*options, "--format", "json", "--", *project.args]
        since = time.perf_counter()
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=LIMIT)
        seconds = time.perf_counter() - since
        if done.returncode not in (0, 1):
            sys.exit(f"{project.name}: exit code {done.returncode}:\n{done.stderr.decode()[-3000:]}")
        status = ["git", "-C", str(tree), "status", "--porcelain", "--ignored"]
        dirt = subprocess.check_output(status, text=True)
        if dirt:
            sys.exit(f"{project.name}: unflake changed the user's files:\n{dirt}")
        report = json.loads(done.stdout)
        findings = {finding["id"]: finding for finding in report["findings"]}
        return Result(project, report["summary"]["tests"], seconds, findings)


def call(command: List[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stdout.decode(errors='replace')[-2000:]}")


# --- comparing ----------------------------------------------------------------------------------


def word(finding: Dict[str, Any]) -> str:
    return " ".join(filter(None, (finding["verdict"], finding["kind"])))


def differences(case: Dict[str, Any], result: Result) -> List[str]:
    """The wrong answers about a project whose truth is known."""
    said = {test: word(finding) for test, finding in result.findings.items()}
    wrong = []
    for test, truth in case["nio"].items():
        expected = "nio shared-fixtures" if truth["needs_shared_fixtures"] else "nio"
        if said.get(test) != expected:
            wrong.append(f"{test} is {expected}, said: {said.get(test, 'nothing')}")
    for test, name in case["not_nio"].items():
        if said.get(test) != name:
            wrong.append(f"{test} is {name}, said: {said.get(test, 'nothing')}")
    names = {test: truth["kind"] for test, truth in case["order_dependent"].items()}
    names.update({test: truth["name"] for test, truth in case["also"].items()})
    # A test that fails by chance may get any name but NIO, or none.
    chance = [test for test in case.get("chance", {}) if not said.get(test, "").startswith("nio")]
    for test, name in said.items():
        is_known = test in case["nio"] or test in case["not_nio"] or test in chance
        if not is_known and names.get(test) != name:
            wrong.append(f"{test} is not known to be {name}")
    return wrong


def unknown(seen: Dict[str, Any], result: Result) -> List[str]:
    """The findings in a suite without a known truth that nobody has looked at, or found to be wrong; and NIO
    tests that are not found any more."""
    wrong = []
    for test, finding in result.findings.items():
        known = seen.get(test)
        if known is None or known["said"] != word(finding) or not known["is_right"]:
            wrong.append(f"{test}: {word(finding)}")
    missed = [test for test, known in seen.items() if known["said"].startswith("nio")]
    return wrong + [f"{test} was NIO, said: nothing" for test in missed if test not in result.findings]


# --- telling ------------------------------------------------------------------------------------

PAGE = """\
# What `unflake nio` says about real projects

`bench/nio_evaluation.py` wrote this page. It was run in several goes, which it allows: results are kept.

    cargo build --release
    python3 bench/nio_evaluation.py --mode {mode} --write docs/evaluation/nio.md

All projects ran with Python 3.11 (yamicache: 3.8) and pytest 8.3.5. After each run the checkout was compared
with its commit, ignored files included: none was changed. Times are those of a busy machine.

## Projects with a known truth

Their tests were run many times by hand, each candidate alone in fresh processes (`bench/cases.json`).
"Look-alikes" seem NIO when the whole suite is run twice, and are not. "Wrong" counts the NIO tests that were
not confirmed with the right kind, look-alikes without their right name, and findings that are not known to
be right.

{cases}

{also}

## Other suites

Nothing was known to us about these when unflake first ran on them. Every finding was looked at by hand, and
shown again with plain pytest. The last ten have NIO tests by the list that the authors of NIO 2022 keep; all
of them were found.

{suites}

{seen}
"""


def write_cases(cases: Dict[str, Any], results: Dict[str, Result]) -> str:
    lines = ["| Project | Tests | NIO | Found | Look-alikes | Right | Other findings | Wrong | Time |"]
    lines.append("|-|-:|-:|-:|-:|-:|-|-:|-:|")
    for name, case in cases.items():
        if name not in results:
            continue
        result, wrong = results[name], differences(case, results[name])
        missed = {line.split(" is ")[0] for line in wrong}
        found = [test for test in case["nio"] if test not in missed]
        named = [test for test in case["not_nio"] if test not in missed]
        known = {*case["nio"], *case["not_nio"]}
        others: Dict[str, int] = {}
        for test, finding in result.findings.items():
            if test not in known:
                others[word(finding)] = others.get(word(finding), 0) + 1
        other = ", ".join(f"{count} {what}" for what, count in others.items())
        numbers = f"{len(case['nio'])} | {len(found)} | {len(case['not_nio'])} | {len(named)}"
        project = f"[{name}](https://github.com/{case['repository']}) at {case['commit'][:10]}"
        end = f"{other} | {len(wrong)} | {result.seconds:.0f} s"
        lines.append(f"| {project} | {result.tests} | {numbers} | {end} |")
    return "\n".join(lines)


def write_also(cases: Dict[str, Any]) -> str:
    also = [(name, test, known) for name, case in cases.items() for test, known in case["also"].items()]
    lines = [f"- {name}, `{test}`: {known['name']}. {known['why']}" for name, test, known in also]
    chance = [(name, *known) for name, case in cases.items() for known in case.get("chance", {}).items()]
    lines += [f"- {name}, `{test}`, if it is found: {why}" for name, test, why in chance]
    return "\n".join(["These findings are right and were not listed:", "", *lines])


def write_suites(results: List[Result], suites: Dict[str, Any]) -> str:
    lines = ["| Project | Tests | Findings | Right | Time |", "|-|-:|-|-:|-:|"]
    for result in results:
        project = result.project
        counts: Dict[str, int] = {}
        for finding in result.findings.values():
            counts[word(finding)] = counts.get(word(finding), 0) + 1
        findings = ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"
        right = len(result.findings) - len(unknown(suites[project.name]["seen"], result))
        name = f"[{project.name}](https://github.com/{project.repository}) at {project.commit[:10]}"
        lines.append(f"| {name} | {result.tests} | {findings} | {right} | {result.seconds:.0f} s |")
    return "\n".join(lines)


def write_seen(results: List[Result], suites: Dict[str, Any]) -> str:
    lines = []
    for result in results:
        for test, finding in result.findings.items():
            known = suites[result.project.name]["seen"].get(test, {"why": "Not looked at."})
            lines.append(f"- {result.project.name}, `{test}`: {word(finding)}. {known['why']}")
    return "\n".join(lines)


def main() -> None:
    cache = Path.home() / ".cache/unflake/nio-evaluation"
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--source", default="https://github.com/{owner}/{name}", help="what is cloned")
    parser.add_argument("--mode", default="auto", help="the mode of `unflake nio` [default: auto]")
    parser.add_argument("--only", nargs="*", help="the names of some projects")
    parser.add_argument("--write", type=Path, help="also write the page to this file")
    args = parser.parse_args()
    evaluation = Evaluation((args.unflake or find_unflake()).resolve(), args.work.resolve(), args.source)
    cases, suites = read_data("cases.json"), read_data("nio_suites.json")
    results: Dict[str, Result] = {}
    wrong: List[str] = []
    for project in map(to_project, [*cases.values(), *suites.values()]):
        if args.only and project.name not in args.only:
            continue
        result = evaluation.run_once(project, args.mode)
        results[project.name] = result
        name = project.name
        trouble = differences(cases[name], result) if name in cases else unknown(suites[name]["seen"], result)
        wrong += [f"{name}: {line}" for line in trouble]
        print(f"{name}: {result.tests} tests, {result.seconds:.1f} s, {len(trouble)} wrong", file=sys.stderr)
    others = [result for name, result in results.items() if name not in cases]
    page = PAGE.format(
        mode=args.mode,
        cases=write_cases(cases, results),
        also=write_also(cases),
        suites=write_suites(others, suites),
        seen=write_seen(others, suites),
    )
    if args.write:
        args.write.write_text(page)
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

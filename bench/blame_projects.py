"""The public projects of `blame.py`: their sources, their environment, and a survey of what their tests run.

Sources are source distributions, pinned by version and fetched by pip. Each is unpacked into a git repository
whose only commit is the release. All projects share one environment of Python 3.12 with pytest; a project
with a `src` folder is "installed" there in editable mode (a `.pth` file), the others are imported from the
folder that pytest is started in.

The survey runs the suite once, by plain pytest, and writes down which functions of the product each test
calls, how often, and which of them end by an exception. Planters choose places by it.
"""

# ruff: noqa: E501 - the table of projects has long lines

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

PYTHON, PYTEST, RERUNS = "3.12", "8.4.2", "16.1"
LIMIT = 300  # seconds for one command

# Name, version, folder that is on the path of a src layout, product, tests, tests that pass on Python 3.12, what else the
# suite needs, options for pytest. Each suite passed three times of three with plain pytest before it was taken in.
PROJECTS = """
boltons        | 26.2.0 |     | boltons      | tests           | 519   | |
cachetools     | 8.0.0  | src | src          | tests           | 416   | |
click          | 8.5.1  | src | src          | tests           | 2433  | | --deselect=tests/test_termui.py::test_echo_via_pager_streams_each_write
h11            | 0.16.0 |     | h11          | h11             | 78    | |
itsdangerous   | 2.2.0  | src | src          | tests           | 297   | freezegun==1.5.5 |
marshmallow    | 4.4.0  | src | src          | tests           | 1192  | simplejson==3.20.2 |
simpleeval     | 1.0.8  |     | simpleeval.py | tests          | 160   | |
sqlparse       | 0.6.1  |     | sqlparse     | tests           | 537   | |
tabulate       | 0.10.0 | .   | tabulate     | test            | 303   | wcwidth==0.2.14 |
tinydb         | 4.9.0  |     | tinydb       | tests           | 218   | |
toolz          | 1.2.0  |     | toolz        | toolz           | 192   | |
voluptuous     | 0.16.0 |     | voluptuous   | voluptuous      | 168   | |
xmltodict      | 1.0.4  |     | xmltodict.py | tests           | 119   | |
"""

# Small suites for the sample that runs in CI.
SMALL = ("h11", "itsdangerous", "voluptuous", "xmltodict", "cachetools", "simpleeval")

SURVEY = '''
import json, os, sys, time
TARGET, TREE = os.environ.pop("BLAME_SURVEY"), os.getcwd() + os.sep
os.environ.pop("PYTHONPATH", None)
sys.path.remove(os.path.dirname(__file__))
import pytest
TESTS, OUTSIDE, NOW = [], set(), [None]
def key(code):
    return f"{code.co_filename[len(TREE):]}|{code.co_firstlineno}|{code.co_qualname}"
def begun(code, offset):
    if not code.co_filename.startswith(TREE): return sys.monitoring.DISABLE
    if NOW[0] is None: OUTSIDE.add(key(code))
    else: NOW[0]["calls"][key(code)] = NOW[0]["calls"].get(key(code), 0) + 1
def unwound(code, offset, error):
    if NOW[0] is not None and code.co_filename.startswith(TREE): NOW[0]["raised"][key(code)] = 1
sys.monitoring.use_tool_id(4, "blame")
events = sys.monitoring.events
sys.monitoring.register_callback(4, events.PY_START, begun)
sys.monitoring.register_callback(4, events.PY_UNWIND, unwound)
sys.monitoring.set_events(4, events.PY_START | events.PY_UNWIND)
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    test = {"id": item.nodeid, "calls": {}, "raised": {}, "passed": False, "seconds": time.monotonic()}
    TESTS.append(test)
    NOW[0] = test
    yield
    NOW[0] = None
    test["seconds"] = time.monotonic() - test["seconds"]
def pytest_runtest_logreport(report):
    if report.when == "call" and report.outcome == "passed" and not hasattr(report, "wasxfail"):
        for test in TESTS[-1:]: test["passed"] = test["id"] == report.nodeid
def pytest_unconfigure():
    sys.monitoring.set_events(4, 0)
    with open(TARGET, "w") as file: json.dump({"tests": TESTS, "outside": sorted(OUTSIDE)}, file)
'''


class Trouble(Exception):
    """What keeps a project or a case from being measured."""


class Site(NamedTuple):
    """A function of the product that can be changed, and the tests that call it, by their place in the suite."""

    file: str
    name: str
    calls: Dict[int, int]
    raised: FrozenSet[int]
    is_plain: bool

    @property
    def tests(self) -> List[int]:
        return sorted(self.calls)


class Test(NamedTuple):
    """A test of the suite; `name` is that of its function in the file, if it stands there exactly once."""

    id: str
    file: str
    name: Optional[str]
    seconds: float


class Survey(NamedTuple):
    """What is known about a project's suite; tests stand in the order in which they ran."""

    tests: List[Test]
    sites: List[Site]


class Project(NamedTuple):
    name: str
    version: str
    path: str
    product: str
    suite: str
    passed: int
    requires: str
    options: str

    def module(self, file: str) -> str:
        """The name by which a file of the product is imported."""
        parts = list(Path(file).with_suffix("").parts)
        if parts[0] == self.path:
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_projects() -> List[Project]:
    rows = [[cell.strip() for cell in line.split("|")] for line in PROJECTS.strip().splitlines()]
    return [Project(*row[:5], int(row[5]), *row[6:]) for row in rows]


def call(command: List[str], folder: Path, env: Optional[Dict[str, str]] = None) -> str:
    """The output of a command; raises if it does not end well."""
    try:
        done = subprocess.run(command, cwd=folder, env=env, timeout=LIMIT, capture_output=True, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Trouble(f"`{' '.join(command[:3])}` was still running after {LIMIT} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise Trouble(f"`{' '.join(command[:4])}` ended with {done.returncode}: {said[-1500:]}")
    return done.stdout.decode(errors="replace")


def clean_environment() -> Dict[str, str]:
    """The environment without what CI, pytest, Python, git or unflake would read."""
    dropped = ("PYTEST_", "PYTHON", "UNFLAKE_", "GITHUB_", "GIT_", "CI", "BLAME_", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    for role in ("AUTHOR", "COMMITTER"):
        env.update({f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.org", f"GIT_{role}_DATE": "1700000000 +0000"})
    env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
    return env


class Home:
    """The folder with sources and environments; all that is made there is made once."""

    def __init__(self, work: Path) -> None:
        self.work, self.env = work, clean_environment()
        self.packages = work / f"packages-{PYTHON}-{PYTEST}"
        self.reruns = work / f"reruns-{RERUNS}"
        self.surveys: Dict[str, Survey] = {}

    def python(self) -> str:
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        return next(iter([*map(str, pyenv.glob(f"{PYTHON}.*/bin/python"))]), f"python{PYTHON}")

    def prepare(self, projects: List[Project]) -> None:
        """Makes the environment and each project's repository and survey, unless they are there."""
        self.work.mkdir(parents=True, exist_ok=True)
        pip = [self.python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--target"]
        requires = [f"pytest=={PYTEST}", *(word for project in read_projects() for word in project.requires.split())]
        for folder, words in ((self.packages, requires), (self.reruns, ["--no-deps", f"pytest-rerunfailures=={RERUNS}"])):
            if not (folder / "ready").exists():
                shutil.rmtree(folder, ignore_errors=True)
                call([*pip, str(folder), *words], self.work)
                (folder / "ready").touch()
        for project in projects:
            self.fetch(project)
            self.surveys[project.name] = self.survey(project)

    def source(self, project: Project) -> Path:
        return self.work / "sources" / f"{project.name}-{project.version}"

    def fetch(self, project: Project) -> None:
        source = self.source(project)
        if (source / ".git/ready").exists():
            return
        shutil.rmtree(source, ignore_errors=True)
        fetched = self.work / "fetched" / project.name
        shutil.rmtree(fetched, ignore_errors=True)
        words = ["--no-deps", "--no-binary", project.name, f"{project.name}=={project.version}"]
        call([self.python(), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "-d", str(fetched), *words], self.work)
        shutil.unpack_archive(str(next(fetched.iterdir())), str(fetched / "open"))
        source.parent.mkdir(exist_ok=True)
        # A copy belongs to us; what root unpacks belongs to whom the archive says, and git refuses that.
        shutil.copytree(next((fetched / "open").iterdir()), source, symlinks=True)
        call(["git", "init", "--quiet", "-b", "main"], source, self.env)
        call(["git", "add", "--all", "--force"], source, self.env)
        call(["git", "commit", "--quiet", "-m", f"{project.name} {project.version}"], source, self.env)
        (source / ".git/ready").touch()

    def interpreter(self, project: Project, tree: Path, folder: Path) -> Path:
        """The interpreter of an environment that has the packages, and the tree in editable mode if it is a src layout."""
        python = folder / "bin/python"
        if not python.exists():
            call([self.python(), "-m", "venv", "--without-pip", str(folder)], folder.parent, self.env)
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "packages.pth").write_text(f"{self.packages}\n")
        (site / "editable.pth").write_text(f"{tree / project.path}\n" if project.path else "")
        about = site / f"{project.name.replace('-', '_')}-{project.version}.dist-info"
        if project.path and not about.exists():
            about.mkdir()
            (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project.name}\nVersion: {project.version}\n")
        return python

    def survey(self, project: Project) -> Survey:
        kept = self.work / "surveys" / f"{project.name}-{project.version}.json"
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            folder = self.work / "surveying" / project.name
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.source(project), folder / "tree", symlinks=True)
            (folder / "plugin").mkdir()
            (folder / "plugin/blame_survey.py").write_text(SURVEY)
            env = {**self.env, "BLAME_SURVEY": str(kept) + ".part", "PYTHONPATH": str(folder / "plugin")}
            python = self.interpreter(project, folder / "tree", folder / "venv")
            words = ["-p", "blame_survey", "-p", "no:cacheprovider", "-q", *project.options.split(), project.suite]
            call([str(python), "-m", "pytest", *words], folder / "tree", env)
            passed = sum(test["passed"] for test in json.loads(Path(f"{kept}.part").read_text())["tests"])
            if passed != project.passed:
                raise Trouble(f"{passed} tests of {project.name} pass here, and not {project.passed}")
            os.replace(f"{kept}.part", kept)
            shutil.rmtree(folder)
        return read_survey(project, json.loads(kept.read_text()), self.source(project))


def read_survey(project: Project, raw: Dict[str, Any], tree: Path) -> Survey:
    outlines: Dict[str, Dict[str, ast.AST]] = {}

    def outline(file: str) -> Dict[str, ast.AST]:
        if file not in outlines:
            path = tree / file
            outlines[file] = functions(path.read_text()) if path.suffix == ".py" and path.exists() else {}
        return outlines[file]

    tests = []
    for test in raw["tests"]:
        file, *names = test["id"].split("[")[0].split("::")
        name = ".".join(names)
        tests.append(Test(test["id"], file, name if test["passed"] and name in outline(file) else None, test["seconds"]))
    calls: Dict[str, Dict[int, int]] = {}
    raised: Dict[str, Set[int]] = {}
    for place, test in enumerate(raw["tests"]):
        for name, count in test["calls"].items():
            calls.setdefault(name, {})[place] = count
        for name in test["raised"]:
            raised.setdefault(name, set()).add(place)
    sites, files, outside = [], {test.file for test in tests}, set(raw["outside"])
    for name, by in sorted(calls.items()):
        file, line, qualified = name.split("|")
        is_test = file in files or any("test" in part for part in Path(file).parts)
        found = outline(file).get(qualified)
        if is_test or name in outside or not file.startswith(project.product) or found is None or first_line(found) != int(line):
            continue
        sites.append(Site(file, qualified, by, frozenset(raised.get(name, ())), is_plain(found)))
    return Survey(tests, sites)


def functions(text: str) -> Dict[str, ast.AST]:
    """The functions of a file and of its classes, by name, that stand there once and have a body that lines can be put before."""
    found: Dict[str, Optional[ast.AST]] = {}

    def visit(body: List[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = prefix + node.name
                found[name] = None if name in found or first_statement(node) is None else node
            elif isinstance(node, (ast.If, ast.Try)):
                for inner in [*node.body, *node.orelse]:
                    for one in ast.walk(inner):
                        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                            found[prefix + one.name] = None

    visit(ast.parse(text).body, "")
    skipped = ("__del__", "__hash__", "__repr__", "__getattr__", "__new__", "__init_subclass__")
    return {name: node for name, node in found.items() if node is not None and not name.endswith(skipped)}


def first_statement(node: Any) -> Optional[ast.stmt]:
    """The first statement after the docstring, if it begins a line of its own below the `def`."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not body or body[0].lineno <= node.lineno or isinstance(body[0], (ast.FunctionDef, ast.ClassDef)):
        return None
    before: Tuple[int, int] = (node.body[0].end_lineno, node.body[0].end_col_offset) if body is not node.body else (0, 0)
    return None if before[0] >= body[0].lineno else body[0]


def first_line(node: Any) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def is_plain(node: Any) -> bool:
    """Whether a call of it runs its body at once: it is neither a coroutine nor a generator."""
    inner = [one for one in ast.walk(node) if isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await))]
    return isinstance(node, ast.FunctionDef) and not inner


if __name__ == "__main__":
    sys.exit("this is a part of blame.py")

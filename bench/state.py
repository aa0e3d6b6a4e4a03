"""Measures how long a snapshot of the state takes in a project with numpy and sqlalchemy loaded.

It writes a project of fifty modules with classes, functions, caches and tables, imports all of it in a
pytest run, and takes snapshots in there: `mark` is what is paid before a test, `compare` after it.

    python3 bench/state.py --write docs/benchmarks.md

The packages live in a virtual environment of their own in ~/.cache/unflake/state, which is made when it
is missing. Times are those of the processor, so that a busy machine does not matter
much. It exits with 1 if the median of `mark`, with or without files, is over the limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))
from order import replace_section

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unflake" / "state"
LIMIT = 150.0  # milliseconds
MODULES, CLASSES, FUNCTIONS = 50, 8, 12
PACKAGES = ("pytest", "numpy", "sqlalchemy")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path, help="a page whose section is replaced")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to make the environment of")
    options = parser.parse_args()
    python = make_environment(options.python)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
        write_project(Path(folder), options.rounds)
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-s", "test_bench.py"]
        # Others may write into the common temporary folder.
        environment = {**os.environ, "TMPDIR": temporary}
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
        times = json.loads(Path(folder, "times.json").read_text())
    return report(times, options.write)


def make_environment(python: str) -> Path:
    venv = HOME / "venv"
    if not venv.exists():
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        install = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(install, check=True)
    return venv / "bin" / "python"


def write_project(folder: Path, rounds: int) -> None:
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for number in range(MODULES):
        (package / f"part{number}.py").write_text(part(number))
    (folder / "test_bench.py").write_text(
        f"""
import importlib, json, sys, time
sys.path.insert(0, {str(ROOT / "runners" / "pytest")!r})
import numpy, numpy.random, sqlalchemy, sqlalchemy.orm
for number in range({MODULES}):
    importlib.import_module(f"shop.part{{number}}")
from unflake_state import State


def test_bench(request):
    times = {{"modules": len(sys.modules)}}
    for files in (False, True):
        state = State(request.config, [{str(folder)!r}], files=files)
        marks, compares = [], []
        for _ in range({rounds}):
            started = time.process_time()
            marked = state.mark()
            between = time.process_time()
            compared = state.compare()
            ended = time.process_time()
            assert compared["pieces"] == [], compared
            marks.append(between - started)
            compares.append(ended - between)
        name = "with files" if files else "without files"
        times[name] = {{"mark": marks, "compare": compares}}
        times["objects"], times["nodes"] = marked["objects"], len(state.nodes)
    with open("times.json", "w") as file:
        json.dump(times, file)
"""
    )


def part(number: int) -> str:
    """A module like many: a table of a database, classes with instances, a cache, an array."""
    lines = [
        "import functools",
        "import logging",
        "import numpy",
        "import sqlalchemy as sa",
        "log = logging.getLogger(__name__)",
        f"metadata{number} = sa.MetaData()",
        f"table = sa.Table('table{number}', metadata{number}, sa.Column('id', sa.Integer, primary_key=True),",
        "    sa.Column('name', sa.String(50)), sa.Column('price', sa.Float))",
        "GRID = numpy.zeros((20, 20))",
        "CACHE = {f'key{n}': {'value': n, 'tags': ['a', 'b']} for n in range(50)}",
    ]
    for one in range(CLASSES):
        lines += [
            f"class Class{one}:",
            "    registry = []",
            "    def __init__(self):",
            "        self.items = {}",
        ]
        lines += [f"    def method{n}(self, first=None): return first" for n in range(6)]
        lines += [f"instance{one} = Class{one}()"]
    for one in range(FUNCTIONS):
        lines += [f"@functools.lru_cache()\ndef function{one}(argument, other=()): return argument"]
    return "\n".join(lines) + "\n"


def report(times: Dict[str, Any], page: Optional[Path]) -> int:
    print(f"{times['modules']} modules loaded, {times['objects']:,} objects, {times['nodes']:,} nodes")
    slow, rows = False, []
    for name in ("without files", "with files"):
        for what in ("mark", "compare"):
            values: List[float] = sorted(1000 * one for one in times[name][what])
            print(f"{what:8} {name:14} median {median(values):6.1f} ms, worst {values[-1]:6.1f} ms")
            is_slow = what == "mark" and median(values) > LIMIT
            goal = f"≤ {LIMIT:.0f} ms{' (**missed**)' if is_slow else ''}" if what == "mark" else ""
            rows.append(f"| {what} | {name} | {median(values):.0f} ms | {values[-1]:.0f} ms | {goal} |")
            slow = slow or is_slow
    print(f"the limit of {LIMIT:.0f} ms is {'not ' if slow else ''}kept")
    if page is not None:
        head = [
            "## Order dependence: a snapshot of the state\n",
            f"`bench/state.py --write` wrote this section: {times['modules']} modules loaded, numpy and"
            f" sqlalchemy among them, {times['objects']:,} objects of the project. Processor time.\n",
            "| | | Median | Worst | Goal |",
            "|-|-|-:|-:|-|",
        ]
        replace_section(page, "bench/state.py", "\n".join([*head, *rows]), "Benchmarks")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())

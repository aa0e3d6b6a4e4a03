"""Times the history against pandas + scipy and DuckDB + scipy on the same runs, side by side.

    cargo build --release
    python3 bench/history.py --write docs/benchmarks.md

`unflake simulate` writes the runs as a table. Each contender imports it into a store of its own (a SQLite
file, a Parquet file, a DuckDB file), and then computes from there, in a process of its own each time: the flake
rates with Wilson's interval, the confidence of each test and its course, the unstable tests by the paper's rule,
and the order of reruns by P_t. All must come to the same numbers.
"""

# ruff: noqa: E501 - rows of tables are long

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import find_unflake

PACKAGES = ["duckdb==2.0.0", "pandas==3.1.1", "pyarrow==26.0.1", "scipy==1.17.1", "numpy==2.4.6"]
MARKS = ("<!-- written by bench/history.py -->", "<!-- end of bench/history.py -->")
CONTENDERS = ["unflake", "pandas", "duckdb"]
RELEASE = "D"

IMPORT = {
    "pandas": """
import pandas
runs = pandas.read_csv("{table}", parse_dates=["time"], engine="pyarrow")
runs.to_parquet("{store}")
""",
    "duckdb": """
import duckdb
store = duckdb.connect("{store}")
store.execute("SET enable_progress_bar = false")
store.execute("CREATE TABLE runs AS SELECT * FROM read_csv('{table}')")
store.execute("CHECKPOINT")
""",
}

COUNTS = {
    "pandas": """
import pandas
runs = pandas.read_parquet("{store}", columns=["test", "time", "verdict", "release", "bug"])
runs = runs[runs.release.isin(["C", "D"])]
runs["day"] = runs.time.dt.floor("D")
runs["failed"] = runs.verdict == "failed"
runs["flaky"] = runs.failed & runs.bug.isna()
keys = ["release", "test", "day"]
counts = runs.groupby(keys).agg(runs=("failed", "size"), failures=("failed", "sum"), flaky=("flaky", "sum"))
counts = counts.reset_index()
""",
    "duckdb": """
import duckdb
store = duckdb.connect("{store}", read_only=True)
store.execute("SET enable_progress_bar = false")
counts = store.execute(\"\"\"
    SELECT release, test, date_trunc('day', time) AS day, count(*) AS runs,
        count(*) FILTER (verdict = 'failed') AS failures,
        count(*) FILTER (verdict = 'failed' AND bug IS NULL) AS flaky
    FROM runs WHERE release IN ('C', 'D') GROUP BY ALL ORDER BY test, day
\"\"\").df()
""",
}

TABLES = """
import json
import numpy
import pandas
from scipy import stats

counts = counts.sort_values(["test", "day"])
before, now = counts[counts.release == "C"], counts[counts.release == "D"]
first = before.day.min()
days = (before.day - first).dt.days
stable = before[(days >= 90) & (days < 180)].groupby("test")[["runs", "flaky"]].sum()
current = now.groupby("test")[["runs", "failures", "flaky"]].sum()

# Rates with Wilson's interval.
z = stats.norm.ppf(0.975)
n, f = current.runs.to_numpy(), current.flaky.to_numpy()
rate = f / n
middle = (f + z * z / 2) / (n + z * z)
half = z / (n + z * z) * numpy.sqrt(n * rate * (1 - rate) + z * z / 4)
quartiles = numpy.quantile(rate, [0.25, 0.5, 0.75])

# Confidence, and the day on which it was reached.
stable = stable.add_suffix("_stable")
known = current.join(stable, how="left")
known["rate"] = known.flaky_stable / known.runs_stable
known["needed"] = 1.65**2 * known.rate * (1 - known.rate) / 0.05**2
course = now.join(known[["rate", "needed"]], on="test")
course["sum"] = course.groupby("test").runs.cumsum()
course["failed"] = course.groupby("test").failures.cumsum()
enough = course[course["sum"] >= course.needed].groupby("test").day.min()
curve = enough.value_counts().sort_index().cumsum()

# Unstable by the paper's rule, on days with failures.
looked = course[(course.failures > 0) & course.rate.notna()]
p = stats.binom.sf(looked.failed - 1, looked["sum"], looked.rate)
unstable = looked[p <= 0.05].groupby("test").day.min()

# The next test to run, by P_t.
likely = stats.binom.logpmf(known.failures, known.runs, known.rate.fillna(0))
order = numpy.argsort(likely, kind="stable")
answer = [len(current), int(f.sum()), float(quartiles[1]), len(enough), len(unstable)]
print(json.dumps(answer))
"""


class Cost(NamedTuple):
    """The time and memory that a process took."""

    seconds: float
    processor: float
    megabytes: float


class Bench:
    """Makes the runs, lets each contender work on them, and keeps what it took."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.unflake, self.work = args.unflake or find_unflake(), args.work
        self.work.mkdir(parents=True, exist_ok=True)
        folder = self.work / "venv"
        self.python = folder / "bin/python"
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            subprocess.check_call([str(self.python), "-m", "pip", "install", "--quiet", *PACKAGES])
            (folder / "ready").touch()

    def table(self, runs: int) -> Path:
        table = self.work / f"{runs}.csv"
        if not table.exists():
            unfinished = table.with_suffix(".new")
            subprocess.check_call([str(self.unflake), "simulate", str(unfinished), "--runs", str(runs)])
            unfinished.rename(table)
        return table

    def run(self, command: List[str]) -> Tuple[Cost, str]:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise SystemExit(f"{command} failed")
        seconds = time.monotonic() - begin
        return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), output

    def load(self, contender: str, runs: int) -> Cost:
        table, store = self.table(runs), self.work / f"{runs}.{contender}"
        for old in self.work.glob(f"{runs}.{contender}*"):
            old.unlink()
        if contender == "unflake":
            command = [str(self.unflake), "record", str(table), "--store", str(store)]
        else:
            command = [str(self.python), "-c", IMPORT[contender].format(table=table, store=store)]
        return self.run(command)[0]

    def compute(self, contender: str, runs: int) -> Tuple[Cost, List[Any]]:
        store = self.work / f"{runs}.{contender}"
        if contender != "unflake":
            script = COUNTS[contender].replace("{store}", str(store)) + TABLES
            cost, output = self.run([str(self.python), "-c", script])
            return cost, json.loads(output)
        answers: Dict[str, Any] = {}
        costs = []
        for verb, options in [
            ("rates", []),
            ("confidence", ["--paper"]),
            ("unstable", ["--mode", "paper"]),
            ("next", ["--order", "binomial", "--prior", "none"]),
        ]:
            common = ["--store", str(store), "--release", RELEASE, "--flaky-rule", "bug", "--format", "json"]
            cost, output = self.run([str(self.unflake), verb, *common, *options])
            answers[verb] = json.loads(output)
            costs.append(cost)
        total = Cost(
            sum(cost.seconds for cost in costs),
            sum(cost.processor for cost in costs),
            max(cost.megabytes for cost in costs),
        )
        rates, unstable = answers["rates"]["summary"], answers["unstable"]["summary"]
        enough = answers["confidence"]["summary"]
        reached = round(enough["enough"] * (enough["tests"] - enough["without_baseline"]))
        median = rates["rate"]["median"]
        return total, [unstable["tests"], rates["flaky_failures"], median, reached, unstable["unstable"]]


def page(bench: Bench, sizes: List[int], rounds: int) -> str:
    lines = [
        MARKS[0],
        "",
        "## The history",
        "",
        "`bench/history.py` wrote this section. Runs of `unflake simulate`; the fastest of "
        f"{rounds} rounds, with the processor time and the memory of that round. Machine: {os.cpu_count()} cores, "
        f"Linux, with a load of {os.getloadavg()[2]:.1f} over the last 15 minutes. *Tables* are rates, confidence, "
        "unstable (the paper's rule) and next (by P_t) from the store: four processes of unflake, one of the others.",
        "",
        "| runs | contender | import | processor | memory | tables | processor | memory |",
        "|-:|-|-:|-:|-:|-:|-:|-:|",
    ]
    for runs in sizes:
        answers = {}
        for contender in CONTENDERS:
            loads, tables = [], []
            for _ in range(rounds):
                loads.append(bench.load(contender, runs))
                cost, answers[contender] = bench.compute(contender, runs)
                tables.append(cost)
            cells = []
            for cost in (min(loads), min(tables)):
                cells += [f"{cost.seconds:.1f} s", f"{cost.processor:.1f} s", f"{cost.megabytes:.0f} MB"]
            lines.append(f"| {runs:,} | {contender} | {' | '.join(cells)} |")
            print(lines[-1], answers[contender], flush=True)
        agree = all(
            all(abs(one - other) < 1e-9 for one, other in zip(answers["unflake"], answers[name]))
            for name in CONTENDERS
        )
        if not agree:
            raise SystemExit(f"the contenders do not agree: {answers}")
    lines += ["", "All contenders came to the same numbers.", "", MARKS[1]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    cache = Path.home() / ".cache/unflake/history-bench"
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of each contender [default: 2]")
    parser.add_argument("--runs", type=int, nargs="*", default=[1_000_000, 3_000_000, 9_900_000])
    parser.add_argument("--write", type=Path, help="also write the section into this page")
    args = parser.parse_args()
    text = page(Bench(args), args.runs, args.rounds)
    if args.write:
        old = args.write.read_text()
        if MARKS[0] in old:
            head, rest = old.split(MARKS[0])
            old = head + text + rest.split(MARKS[1])[1]
        else:
            old = old.rstrip() + "\n\n" + text + "\n"
        args.write.write_text(old)


if __name__ == "__main__":
    main()

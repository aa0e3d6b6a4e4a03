"""Asks the history's questions of a simulated history whose truth is known, and scores the answers.

    cargo build --release
    python3 bench/history_evaluation.py --write docs/evaluation/history.md

The history has the size of Ericsson's in Rehman 2019. The figures go beside the page.
"""

# ruff: noqa: E501 - rows of tables are long

import argparse
import datetime
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import find_unflake

RELEASES = ["B", "C", "D"]
MODES = ["paper", "fdr", "sequential"]
SHARES = [0.05, 0.15, 0.30, 0.50]
# After a fault is fixed, what it did stays in the counts for a while: an alarm then is late, not false.
AFTERMATH = datetime.timedelta(days=14)


class Score(NamedTuple):
    """The result of one mode on one release."""

    tests: int
    flagged: int
    true: int
    pairs: int
    delays: List[int]


class Evaluation:
    """One simulated history, and the questions that are asked of it."""

    def __init__(self, unflake: Path, work: Path, name: str, options: List[str]) -> None:
        self.unflake, self.work = unflake, work
        self.store, truth = work / f"{name}.db", work / f"{name}.json"
        if not truth.exists():
            for old in work.glob(f"{name}.db*"):
                old.unlink()
            self.call("simulate", "--truth", str(truth), *options)
        self.truth = json.loads(truth.read_text())

    def call(self, verb: str, *options: str) -> str:
        """The answer of unflake; exit code 1 says that something was found."""
        command = [str(self.unflake), verb, "--store", str(self.store), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def ask(self, verb: str, *options: str) -> Any:
        """The answer of unflake as data."""
        return json.loads(self.call(verb, "--format", "json", *options))

    def release(self, name: str) -> Dict[str, Any]:
        return next(one for one in self.truth["releases"] if one["release"] == name)

    def faults(self, release: str) -> List[Dict[str, Any]]:
        return [fault for fault in self.truth["faults"] if fault["release"] == release]

    def alarms(self, release: str, mode: str) -> Tuple[int, Dict[str, datetime.date]]:
        """The number of tests, and the day on which each was flagged during the test cycle."""
        first = datetime.date.fromisoformat(self.release(release)["from"])
        last = first + datetime.timedelta(days=179)
        looks = [last]
        if mode == "fdr":
            looks = [first + datetime.timedelta(days=day) for day in range(6, 180, 7)]
        found: Dict[str, datetime.date] = {}
        tests = 0
        for look in looks:
            options = ["--release", release, "--mode", mode, "-n", "0", "--as-of", str(look)]
            answer = self.ask("unstable", *options)
            tests = answer["summary"]["tests"]
            for test in answer["tests"]:
                flagged = look if mode == "fdr" else datetime.date.fromisoformat(test["flagged"])
                found.setdefault(test["test"], flagged)
        return tests, found

    def score(self, release: str, mode: str) -> Score:
        tests, flagged = self.alarms(release, mode)
        true, delays, pairs = set(), [], 0
        for fault in self.faults(release):
            begin, end = (datetime.date.fromisoformat(fault[key]) for key in ("from", "to"))
            for test in fault["tests"]:
                pairs += 1
                if test in flagged and begin <= flagged[test] <= end + AFTERMATH:
                    true.add(test)
                    delays.append((flagged[test] - begin).days)
        return Score(tests, len(flagged), len(true), pairs, delays)


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def rates(evaluation: Evaluation) -> List[str]:
    rows = [
        "| release | never flaky | under 5/100 | over 10/100 | median | 3rd quartile | stable median | stable 3rd |",
        "|-|-:|-:|-:|-:|-:|-:|-:|",
        "| paper, A to D | 24–36 % | 56–76 % | 18–22 % | 0.014–0.028 | 0.053–0.081 | 0.004–0.020 | 0.034–0.079 |",
    ]
    for release in RELEASES:
        found = evaluation.ask("rates", "--release", release, "--flaky-rule", "bug")["summary"]
        now, stable = found["rate"], found["stable_rate"]
        shares = [percent(found[key], 1) for key in ("never_flaky", "under_5_of_100", "over_10_of_100")]
        numbers = [now["median"], now["third"], stable["median"], stable["third"]]
        rows.append(f"| {release} | {' | '.join(shares)} | {' | '.join(f'{one:.3f}' for one in numbers)} |")
    return rows


def figures(evaluation: Evaluation, folder: Path) -> List[str]:
    rows = [
        "| release | at 95 % after 90 days | after 180 | unstable by the paper's rule after 180 | failed | saved |",
        "|-|-:|-:|-:|-:|-:|",
        "| paper, A to D | 68–80 % | 78–83 % | 17–34 % | – | 34–42 % |",
    ]
    for release in RELEASES:
        plot = folder / f"history-confidence-{release}.svg"
        options = ["--release", release, "--flaky-rule", "bug", "--svg"]
        confident = evaluation.ask("confidence", "--paper", *options, str(plot))["plot"][0]["points"]
        plot = folder / f"history-unstable-{release}.svg"
        answer = evaluation.ask("unstable", "--mode", "paper", *options, str(plot))
        failed, unstable, saved = (line["points"] for line in answer["plot"])
        cells = [confident[90], confident[180], unstable[180], failed[180], saved[180]]
        rows.append(f"| {release} | {' | '.join(percent(share, 1) for _, share in cells)} |")
    return rows


def modes(evaluation: Evaluation) -> List[str]:
    rows = [
        "| mode | tests flagged | of these because of a fault | planted breaks found | days to find them, median (90 %) |",
        "|-|-:|-:|-:|-:|",
    ]
    for mode in MODES:
        scores = [evaluation.score(release, mode) for release in RELEASES]
        flagged, true = sum(one.flagged for one in scores), sum(one.true for one in scores)
        pairs, tests = sum(one.pairs for one in scores), sum(one.tests for one in scores)
        delays = sorted(delay for one in scores for delay in one.delays)
        found = len(delays)
        days = f"{statistics.median(delays):.0f} ({delays[int(found * 0.9)]})" if delays else "–"
        rows.append(
            f"| `{mode}` | {flagged:,} of {tests:,} ({percent(flagged, tests)}) | {percent(true, flagged)} "
            f"| {found} of {pairs} ({percent(found, pairs)}) | {days} |"
        )
    return rows


def false_alarms(evaluation: Evaluation) -> List[str]:
    rows = ["| mode | tests flagged although nothing changed |", "|-|-:|"]
    for mode in MODES:
        counts = [evaluation.alarms(release, mode) for release in RELEASES]
        flagged, tests = sum(len(found) for _, found in counts), sum(tests for tests, _ in counts)
        rows.append(f"| `{mode}` | {flagged:,} of {tests:,} ({percent(flagged, tests)}) |")
    return rows


def replays(evaluation: Evaluation, folder: Path) -> Dict[str, Any]:
    """The result of each order on the runs of each release."""
    answers = {}
    for release in RELEASES:
        plot = folder / f"history-orders-{release}.svg"
        options = ["--replay", "--release", release, "--flaky-rule", "bug", "--svg", str(plot)]
        answers[release] = evaluation.ask("next", *options)["orders"]
    return answers


def days(evaluation: Evaluation, answers: Dict[str, Any]) -> List[str]:
    """Faults shown if only a share of each day's runs can be made: an alarm counts while the fault is there."""
    head = " | ".join(f"{share:.0%}" for share in SHARES)
    rows = [f"| order | {head} |", "|-|" + "-:|" * len(SHARES)]
    for place, name in enumerate(order["order"] for order in answers[RELEASES[0]]):
        cells = []
        for at in range(len(SHARES)):
            shown, total, alarms, true = 0, 0, 0, 0
            delays: List[int] = []
            for release in RELEASES:
                found = answers[release][place]["days"][at]["alarms"]
                when = [(test, datetime.date.fromisoformat(day)) for test, day in found]
                credited = set()
                for fault in evaluation.faults(release):
                    begin, end = (datetime.date.fromisoformat(fault[key]) for key in ("from", "to"))
                    tests = set(fault["tests"])
                    own = [one for one in when if one[0] in tests and begin <= one[1] <= end + AFTERMATH]
                    credited.update(own)
                    delays += [(min(day for _, day in own) - begin).days] if own else []
                    shown, total = shown + bool(own), total + 1
                alarms, true = alarms + len(set(when)), true + len(credited)
            late = f"{statistics.median(delays):.0f} days" if delays else "–"
            cells.append(f"{shown} of {total}, {late}, {percent(true, alarms)}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def orders(evaluation: Evaluation, answers: Dict[str, Any]) -> List[str]:
    head = " | ".join(f"{share:.0%}" for share in SHARES)
    rows = [f"| release | order | {head} |", "|-|-|" + "-:|" * len(SHARES)]
    for release in RELEASES:
        faults = evaluation.faults(release)
        for order in answers[release]:
            when = {test: share for test, share in order["found"]}
            firsts: List[Optional[float]] = [
                min((when[test] for test in fault["tests"] if test in when), default=None) for fault in faults
            ]
            cells = [
                f"{sum(first is not None and first <= share for first in firsts)} of {len(faults)}"
                for share in SHARES
            ]
            rows.append(f"| {release} | {order['order']} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--unflake", type=Path, help="the binary [default: cargo's release build]")
    cache = Path.home() / ".cache/unflake/history-evaluation"
    parser.add_argument("--work", type=Path, default=cache, help="a folder to work in")
    parser.add_argument("--write", type=Path, required=True, help="the page; figures go beside it")
    parser.add_argument("--orders", action="store_true", help="only the orders of reruns")
    args = parser.parse_args()
    unflake = args.unflake or find_unflake()
    args.work.mkdir(parents=True, exist_ok=True)
    real = Evaluation(unflake, args.work, "ericsson", [])
    options = ["--faults", "0", "--bursty", "0", "--clustered", "0"]
    quiet = Evaluation(unflake, args.work, "quiet", options)
    folder = args.write.parent
    answers = replays(real, folder)
    sections = {"ORDERS": orders(real, answers), "DAYS": days(real, answers)}
    if not args.orders:
        sections["RATES"] = rates(real)
        sections["FIGURES"] = figures(real, folder)
        sections["MODES"] = modes(real)
        sections["QUIET"] = false_alarms(quiet)
    page = args.write.read_text()
    for name, rows in sections.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        head, rest = page.split(begin)
        page = head + begin + "\n\n" + "\n".join(rows) + "\n\n" + end + rest.split(end)[1]
        args.write.write_text(page)
        print("\n".join(rows), "\n", flush=True)


if __name__ == "__main__":
    main()

"""Tables of what `blame.py` measured."""

# ruff: noqa: E501 - tables have long lines

import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

Row = Dict[str, Any]
BEGIN, END = "<!-- bench/blame.py begins -->", "<!-- bench/blame.py ends -->"
OFTEN = 0.2  # a failure in one run of five


def read_rows(path: Path) -> List[Row]:
    """The rows of a results file; of a case that was run again the last one."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return list({(row["kind_of_case"], row["seed"], row.get("asked_whole"), row["number"]): row for row in rows}.values())


def upper_bound(hits: int, runs: int, level: float = 0.05) -> float:
    """The one-sided 95 % bound of Clopper and Pearson (1934): the largest share with which so few hits are not too rare."""
    if hits >= runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        share = (low + high) / 2
        at_most = sum(math.comb(runs, hit) * share**hit * (1 - share) ** (runs - hit) for hit in range(hits + 1))
        low, high = (share, high) if at_most > level else (low, share)
    return high


def counted(rows: List[Row], kind: str) -> List[Row]:
    return [row for row in rows if row["kind_of_case"] == kind and row.get("shown") and "trouble" not in row]


def is_forgiven(row: Row) -> bool:
    return bool(row["exit_code"] == 0)


def is_acquitted(row: Row) -> bool:
    """A planted failure of a guilty change was called not yours, whatever the exit code."""
    return any(one["answer"] == "not-yours" and one["is_expected"] for one in row["findings"])


def is_accused(row: Row) -> bool:
    return any(one["answer"] == "yours" for one in row["findings"])


def answer(row: Row) -> str:
    """The answer to a whole case: the worst for an old flake, the best for a guilty change."""
    if is_accused(row):
        return "yours"
    return "not known" if any(one["answer"] != "not-yours" for one in row["findings"]) else "not yours"


def share(hits: int, runs: int) -> str:
    return f"{hits:,} of {runs:,} ({100 * hits / runs:.1f} %)" if runs else "–"


def table(head: str, lines: List[str]) -> str:
    rule = "|".join(["---"] * (head.count("|") + 1))
    return "\n".join(f"| {line} |" for line in [head, rule, *lines])


def group(rows: List[Row], key: Callable[[Row], Any]) -> List[Tuple[Any, List[Row]]]:
    groups: Dict[Any, List[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda pair: str(pair[0]))


def green(rows: List[Row]) -> str:
    asked = [row["reruns"] for row in rows if row.get("reruns")]
    return share(sum(one["green"] for one in asked), len(asked))


def guilty_table(rows: List[Row]) -> str:
    head = "planted | counted | forgiven | called not yours | yours | not known | green with pytest-rerunfailures"

    def line(name: str, some: List[Row]) -> str:
        forgiven, acquitted = sum(map(is_forgiven, some)), sum(map(is_acquitted, some))
        answers = [answer(row) for row in some]
        return f"{name} | {len(some):,} | {forgiven} | {acquitted} | {answers.count('yours'):,} | {answers.count('not known'):,} | {green(some)}"

    lines = [line(name, some) for name, some in group(rows, lambda row: row["planted"]["family"])]
    return table(head, [*lines, line("**all**", rows)])


def kinds_table(rows: List[Row]) -> str:
    leaks = [row for row in rows if row["planted"]["polluters"] or row["planted"]["family"] in ("new polluter", "moved", "removed", "leak of an import")]
    lines = [f"{name} | {len(some):,} | {sum(map(is_forgiven, some))} | {sum(map(is_accused, some))}" for name, some in group(leaks, lambda row: row["planted"]["kind"])]
    return table("state | counted | forgiven | yours", lines)


def innocent_table(rows: List[Row], key: Callable[[Row], Any], name: str) -> str:
    head = f"{name} | counted | forgiven | not yours, and red | not known | accused | green with pytest-rerunfailures"
    lines = []
    for value, some in [*group(rows, key), ("**all**", rows)]:
        forgiven, accused = sum(map(is_forgiven, some)), sum(map(is_accused, some))
        red = sum(answer(row) == "not yours" and not is_forgiven(row) for row in some)
        unknown = len(some) - forgiven - accused - red
        lines.append(f"{value} | {len(some):,} | {share(forgiven, len(some))} | {red} | {unknown} | {accused} | {green(some)}")
    return table(head, lines)


def rate_of(row: Row) -> str:
    history = "with a history" if row["setting"]["has_history"] else "no record"
    rate = row["planted"]["rate"]
    bands = [(0.07, "5 %"), (0.15, "10 %"), (0.27, "20 %"), (0.42, "35 %"), (0.6, "50 %"), (0.8, "70 %"), (0.99, "90 %"), (1.0, "by order")]
    return f"{next(name for most, name in bands if rate <= most)}, {history}"


def median_of(values: List[Optional[float]]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.1f} s ({len(known)} cases)" if known else "not measured"


def tables(rows: List[Row]) -> str:
    guilty, innocent = counted(rows, "guilty"), counted(rows, "innocent")
    parts = []
    if guilty:
        forgiven = sum(map(is_forgiven, guilty))
        whole = sum(row["whole"] for row in guilty)
        bound = 100 * upper_bound(forgiven, len(guilty))
        projects = len({row["project"] for row in guilty})
        parts.append(
            f"Guilty changes: {len(guilty):,} counted in {projects} projects, {whole:,} of them in whole suites. "
            f"Forgiven: **{forgiven}**, which bounds the share at {bound:.2f} % (95 %, Clopper-Pearson)."
        )
        parts += [guilty_table(guilty), kinds_table(guilty)]
    if innocent:
        often = [row for row in innocent if row["planted"]["rate"] >= OFTEN]
        parts.append(
            f"Old flakes under a harmless change: {len(innocent):,} counted. Of those that fail in at least one run of five, "
            f"{share(sum(map(is_forgiven, often)), len(often))} were forgiven; of all, {share(sum(map(is_accused, innocent)), len(innocent))} were accused."
        )
        parts.append(innocent_table(innocent, lambda row: row["planted"]["family"], "old flake"))
        parts.append(innocent_table(innocent, rate_of, "fails in"))
        parts.append(innocent_table(innocent, lambda row: f"{row['change']} ({row['near']})", "harmless change"))
    both = [*guilty, *innocent]
    builds = [f"{len(some):,} cases at {build}" for build, some in group([row for row in both if row.get("build")], lambda row: row["build"])]
    if builds:
        parts.append(f"Measured: {', '.join(builds)}.")
    extra = [row["seconds"] - row["bare_seconds"] if row.get("bare_seconds") else None for row in both]
    troubles = [row for row in rows if "trouble" in row]
    silent = sum(1 for row in rows if row.get("shown") is False)
    many = sum(bool(row.get("too_many")) for row in both)
    parts.append(
        f"Median of the extra time for the answer: {median_of(extra)}. Not counted: {silent:,} cases in which nothing showed, "
        f"{len(troubles):,} that could not be run. In {many:,} more tests failed than are examined."
    )
    return "\n\n".join(parts)


def list_wrong(rows: List[Row]) -> str:
    """Every case that was judged wrongly, by its number."""
    wrong = [row for row in counted(rows, "guilty") if is_forgiven(row) or is_acquitted(row)]
    wrong += [row for row in counted(rows, "innocent") if is_accused(row)]
    lines = []
    for row in wrong:
        said = next((one for one in row["findings"] if one["answer"] in ("yours", "not-yours")), row["findings"][0])
        whole = ", whole suite" if row["whole"] else ""
        about = f"{row['planted']['family']}, {row['planted']['kind']} in {row['project']}"
        lines.append(f"- {row['kind_of_case']} {row['number']} of seed {row['seed']}{whole} ({about}): {said['answer']}, {said['because']}, {said['verdict']}")
    return "\n".join(lines) or "None."


def exit_code(rows: List[Row], is_sample: bool) -> int:
    """1 if a guilty change was forgiven; for the sample also if two old flakes are accused or hardly anything showed."""
    guilty, innocent = counted(rows, "guilty"), counted(rows, "innocent")
    if any(map(is_forgiven, guilty)) or any(map(is_acquitted, guilty)):
        return 1
    if is_sample and (sum(map(is_accused, innocent)) > 1 or len(guilty) < 14):
        return 1
    return 0


def report(results: Path, page: Optional[Path], begin: str = BEGIN, end: str = END) -> int:
    rows = read_rows(results)
    text = f"{tables(rows)}\n\n### Judged wrongly\n\n{list_wrong(rows)}"
    print(text)
    if page:
        old = page.read_text()
        page.write_text(f"{old[: old.index(begin)]}{begin}\n\n{text}\n\n{old[old.index(end) :]}")
    return exit_code(rows, is_sample=False)


def one_line(row: Row) -> str:
    name = f"{row['kind_of_case']} {row['number']}"
    if "trouble" in row:
        return f"{name}: {row['trouble'][:300]}"
    planted = row["planted"]
    said = "base_failed" in row and f"failed {len(row['failed'])}, alone {row['alone']}, base {len(row['base_failed'])}"
    said = said or (f"exit {row['exit_code']}, {answer(row)}, {row['seconds']} s" if row["shown"] else "nothing showed")
    return f"{name} {row['project']} {planted['family']}/{planted['kind']} [{planted['note']}] {planted['rate']:.2f}: {said}, {row['took']} s"


def verification(rows: List[Row]) -> str:
    """Of each family: did it fail with the change, in the expected tests, not at the base, and pass alone in some run?"""
    head = "planted | cases | showed | in an expected test | passed alone once | base failed"
    lines = []
    for name, some in group([row for row in rows if "trouble" not in row], lambda row: (row["kind_of_case"], row["planted"]["family"])):
        shown = [row for row in some if row["shown"]]
        expected, alone = sum(row["expected"] for row in shown), sum(0 in row["alone"] for row in shown)
        lines.append(f"{' '.join(name)} | {len(some)} | {len(shown)} | {expected} | {alone} | {sum(bool(row['base_failed']) for row in some)}")
    troubles = [one_line(row) for row in rows if "trouble" in row]
    return "\n".join([table(head, lines), *troubles])

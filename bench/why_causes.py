"""The rank that `unflake why` gives to the planted causes of `fixtures/why`, in our order and in the paper's.

    cargo build --release
    python3 bench/why_causes.py --python .venv/bin/python --write docs/evaluation/why.md

Each case is run once on a copy of its project; the traces of that one run are ranked in both ways.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- written by bench/why_causes.py -->", "<!-- end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--unflake", default=target / "unflake", type=pathlib.Path)
    parser.add_argument("--python", required=True, help="with pytest")
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--tuned", action="store_true", help="leave out what is held back")
    parser.add_argument("--write", type=pathlib.Path, help="a page whose table is written anew")
    options = parser.parse_args()
    options.unflake = options.unflake.resolve()
    cases = []
    for path in sorted((ROOT / "fixtures/why").glob("*/expected.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            is_left_out = options.tuned and case.get("held_back")
            if options.only in f"{path.parent.name} {case['test']}" and not is_left_out:
                cases.append((path.parent, case))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda one: measure(options, *one), cases))
    text = table(rows)
    print(text)
    if options.write:
        page = options.write.read_text()
        before, rest = page.split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}")


def measure(options: argparse.Namespace, project: pathlib.Path, case: dict) -> dict:
    work = pathlib.Path(tempfile.mkdtemp(prefix="unflake-why-"))
    copy, traces = work / "project", work / "traces"
    shutil.copytree(project, copy)
    common = ["--format", "json", "--top", "100000"]
    command = [options.unflake, "why", "--python", options.python, "--keep", traces, "--no-record"]
    command += ["--plain-runs", "0", "--timeout", "60", *common]
    command += [*(["--fuzz"] if case.get("fuzz") else []), case["test"]]
    try:
        ours = ask(command, copy)
        paper = ask([options.unflake, "why", "--traces", traces / "passing", traces / "failing",
                     "--rank", "paper", *common], copy)  # fmt: skip
    except (ValueError, OSError) as error:
        ours = paper = {"failures": [], "traced": {"failed": 0, "passed": 0}, "trouble": str(error)}
    finally:
        shutil.rmtree(work)
    found = ours["failures"][0]["differences"] if ours["failures"] else []
    listed = paper["failures"][0]["differences"] if paper["failures"] else []
    names = [is_named(one, case["causes"]) for one in found]
    rank = names.index(True) + 1 if True in names else None
    predicates = [is_named(one, case["causes"]) for one in listed]
    row = {
        "name": f"{project.name} `{case['test'].split('::')[1]}`",
        "planted": case["category"],
        "first": (found[0]["category"] or "none") if found else "none",
        "category": found[rank - 1]["category"] if rank else None,
        "runs": ours["traced"]["failed"] + ours["traced"]["passed"],
        "failed": ours["traced"]["failed"],
        "rank": rank,
        "of": len(found),
        "paper": predicates.index(True) + 1 if True in predicates else None,
        "paper_of": paper["failures"][0]["total"] if paper["failures"] else 0,
        "held_back": bool(case.get("held_back")),
        "told": [f"{one['call']['file']}:{one['call']['line']} {one['call']['callee']}" for one in found[:4]],
        "trouble": ours.get("trouble"),
    }
    print(row, flush=True)
    return row


def ask(command: list, folder: pathlib.Path) -> dict:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ValueError(done.stderr)
    answer: dict = json.loads(done.stdout)
    return answer


def is_named(one: dict, causes: list) -> bool:
    # The wait is that of the finding, if somebody waited too short.
    calls = [call for call in (one["call"], one.get("after"), one.get("wait")) if call]
    return any(f"{call['file']}:{call['line']} {call['callee']}" in causes for call in calls)


def table(rows: list) -> str:
    lines = [
        "| case | category | told | runs (failed) | rank, ours | rank, as the paper | held back |",
        "|-|-|-|-:|-:|-:|-|",
    ]
    for row in rows:
        ours = f"{row['rank']} of {row['of']}" if row["rank"] else f"not among {row['of']}"
        paper = f"{row['paper']} of {row['paper_of']}" if row["paper"] else f"not among {row['paper_of']}"
        told = "right" if row["category"] == row["planted"] else f"{row['category'] or row['first']}"
        lines.append(
            f"| {row['name']} | {row['planted']} | {told} | {row['runs']} ({row['failed']}) "
            f"| {ours} | {paper} | {'yes' if row['held_back'] else ''} |"
        )
    groups = (("all", rows), ("held back", [row for row in rows if row["held_back"]]))
    lines += ["", "| | cases | first, ours | in the first three | right category | first, as the paper |",
              "|-|-:|-:|-:|-:|-:|"]  # fmt: skip
    for name, group in groups:
        count = len(group)
        shares = (
            sum(row["rank"] == 1 for row in group),
            sum((row["rank"] or 99) <= 3 for row in group),
            sum(row["category"] == row["planted"] for row in group),
            sum(row["paper"] == 1 for row in group),
        )
        cells = " | ".join(f"{share} ({100 * share / max(count, 1):.0f} %)" for share in shares)
        lines.append(f"| {name} | {count} | {cells} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

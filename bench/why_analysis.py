"""The time and memory that `unflake why --traces` takes for many long traces.

    cargo build --release && cargo build --release -p unflake-driver --example traces
    python3 bench/why_analysis.py --write docs/benchmarks.md

The traces are generated (`crates/driver/examples/traces.rs`). Goal: 100 traces of 335,000 calls, the
average of RootFinder 2019 (4.1), in at most 30 s and 2 GB on two cores, and linear growth.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "<!-- written by bench/why_analysis.py -->"
SIZES = ((25, 335_000), (50, 335_000), (100, 335_000), (100, 33_500))
GOAL_SECONDS, GOAL_BYTES = 30, 2 * 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--unflake", default=target / "unflake", type=pathlib.Path)
    parser.add_argument("--generator", default=target / "examples/traces", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, help="a page whose section is written anew")
    options = parser.parse_args()
    rows = [measure(options, traces, calls) for traces, calls in SIZES]
    text = section(rows)
    print(text)
    if options.write:
        page = options.write.read_text()
        before, _, rest = page.partition(MARK)
        _, mark, after = rest.partition("\n<!-- ")
        after = mark + after if mark else ""
        options.write.write_text(before.rstrip() + "\n\n" + text + after)


def measure(options: argparse.Namespace, traces: int, calls: int) -> dict:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="unflake-traces-"))
    try:
        subprocess.run([options.generator, folder, str(traces), str(calls)], check=True)
        size = sum(file.stat().st_size for file in folder.rglob("*.trace"))
        command = [options.unflake, "why", "--traces", folder / "passing", folder / "failing"]
        output = folder / "answer.json"
        began = time.perf_counter()
        with output.open("w") as file:
            process = subprocess.Popen([*command, "--format", "json"], stdout=file)
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        assert os.waitstatus_to_exitcode(status) == 1, "the traces have failing runs"
        first = json.loads(output.read_text())["failures"][0]["differences"][0]
        assert first["call"]["callee"] == "shop.step_167", first
    finally:
        shutil.rmtree(folder)
    processor = usage.ru_utime + usage.ru_stime
    peak = usage.ru_maxrss * 1024
    row = dict(traces=traces, calls=calls, size=size, seconds=seconds, processor=processor, peak=peak)
    print(row, flush=True)
    return row


def section(rows: list) -> str:
    lines = [
        MARK,
        "## The analysis of traces",
        "",
        "`bench/why_analysis.py` wrote this section: `unflake why --traces` over generated traces, half of",
        "them failing. The planted cause was named first in each row. Two cores, Linux.",
        "",
        "| traces | calls in each | files | seconds | processor seconds | µs a call | peak memory |",
        "|-:|-:|-:|-:|-:|-:|-:|",
    ]
    for row in rows:
        each = row["processor"] * 1e6 / (row["traces"] * row["calls"])
        lines.append(
            f"| {row['traces']} | {row['calls']:,} | {row['size'] / 2**20:,.0f} MB | {row['seconds']:.1f} "
            f"| {row['processor']:.1f} | {each:.2f} | {row['peak'] / 2**20:,.0f} MB |"
        )
    goal = next(row for row in rows if (row["traces"], row["calls"]) == (100, 335_000))
    is_met = goal["seconds"] <= GOAL_SECONDS and goal["peak"] <= GOAL_BYTES
    lines += [
        "",
        "The goal is 100 traces of 335,000 calls each, 33.5 million records, in at most 30 s and 2 GB on two "
        f"cores: {'met' if is_met else '**not met**'}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()

"""The cost of unflake on a Maven module: 300 quick JUnit 4 tests in 30 classes, made here.

    python bench/java.py UNFLAKE [--rounds 3] [--classes 30] [--write docs/benchmarks.md]

Each command runs in turn, so many times, and the least processor time and wall time are shown. The module is
built before. `mvn` is Maven offline with everything up to date; what it needs before it starts the tests is
measured with -DskipTests and taken off. "One JVM" is one plain run of the tests in one JVM: `unflake run`.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
    </dependency>
  </dependencies>
  <build><plugins><plugin>
    <artifactId>maven-surefire-plugin</artifactId><version>2.22.2</version>
  </plugin></plugins></build>
</project>
"""


NAME = "bench/java.py"
METHOD = "unflake nio --mode method --jobs 2"
LIST = "unflake list"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("unflake", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--classes", type=int, default=30, help="each has ten tests")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    unflake = str(args.unflake.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_project(folder, args.classes)
        subprocess.run(["mvn", "-q", "-B", "test"], cwd=folder, check=True)
        subprocess.run([unflake, "list"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = {
            "mvn test": ["mvn", "-o", "-q", "-B", "test"],
            "mvn test -DskipTests": ["mvn", "-o", "-q", "-B", "test", "-DskipTests"],
            LIST: [unflake, "list"],
            "unflake run": [unflake, "run", "--no-record"],
            "unflake nio --mode suite": [unflake, "nio", "--mode", "suite", "--no-record"],
            METHOD: [unflake, "nio", "--mode", "method", "--jobs", "2", "--no-record"],
        }
        best: dict[str, tuple[float, float]] = {}
        for _ in range(args.rounds):
            for name, command in commands.items():
                wall, cpu = measure(command, folder)
                known = best.get(name, (wall, cpu))
                best[name] = (min(known[0], wall), min(known[1], cpu))
    text = describe(best, args.rounds, args.classes * 10)
    print(text)
    if args.write:
        replace_section(args.write, text)


def describe(best: dict[str, tuple[float, float]], rounds: int, tests: int) -> str:
    lines = [
        f"## A Maven module of {tests} quick tests\n",
        f"`{NAME}` wrote this section. The least of {rounds} rounds.\n",
        "| Command | Wall | Processor |",
        "|-|-:|-:|",
    ]
    lines += [f"| `{name}` | {wall:.2f} s | {cpu:.2f} s |" for name, (wall, cpu) in best.items()]
    lines += ["", "| Measured | Wall | Processor | Goal | Met by wall |", "|-|-:|-:|-:|-|"]
    phase = minus(best["mvn test"], best["mvn test -DskipTests"])
    run, suite, method = best["unflake run"], best["unflake nio --mode suite"], best[METHOD]
    rows = [
        ("`unflake run` by the test phase of `mvn test`", ratio(run, phase), 1.05),
        ("`nio --mode suite` by one plain run in one JVM", ratio(suite, run), 2.1),
        ("`nio --mode method` by `--mode suite`", ratio(method, suite), 4.0),
    ]
    for what, (wall, cpu), goal in rows:
        met = "yes" if wall <= goal else "**no**"
        lines.append(f"| {what} | {wall:.2f} | {cpu:.2f} | ≤ {goal} | {met} |")
    return "\n".join(lines)


def ratio(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] / other[0], one[1] / other[1]


def minus(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] - other[0], one[1] - other[1]


def replace_section(path: Path, text: str) -> None:
    """Writes the section of this script into a page, and leaves the rest of the page alone."""
    page = path.read_text()
    first, last = f"<!-- written by {NAME} -->\n", f"<!-- end of {NAME} -->\n"
    section = f"{first}{text.strip()}\n{last}"
    marks = re.compile(rf"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    page = marks.sub(lambda _: section, page) if marks.search(page) else f"{page.rstrip()}\n\n{section}"
    path.write_text(page)


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    began, before = time.monotonic(), os.times()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, cpu


def write_project(folder: Path, classes: int) -> None:
    tests = folder / "src/test/java/bench"
    tests.mkdir(parents=True)
    (folder / "pom.xml").write_text(POM)
    for number in range(classes):
        methods = "".join(
            f"    @Test\n    public void test{at}() throws Exception {{\n        Work.some({at});\n    }}\n"
            for at in range(10)
        )
        text = f"package bench;\n\nimport org.junit.Test;\n\npublic class Bench{number}Test {{\n{methods}}}\n"
        (tests / f"Bench{number}Test.java").write_text(text)
    work = (
        "package bench;\n\nfinal class Work {\n    static void some(int n) throws Exception {\n"
        "        java.security.MessageDigest digest = java.security.MessageDigest.getInstance(\"SHA-256\");\n"
        "        for (int i = 0; i < 20000; i++) {\n            digest.update((byte) (i + n));\n        }\n"
        "        digest.digest();\n    }\n}\n"
    )
    (tests / "Work.java").write_text(work)


if __name__ == "__main__":
    main()

"""Measures whose failure it is in Java: changes with a known culprit, planted into small Maven projects.

    python3 bench/blame_java.py --unflake target/release/unflake --kind guilty --cases 50
    python3 bench/blame_java.py --unflake target/release/unflake --kind innocent --cases 20
    python3 bench/blame_java.py --report --write docs/evaluation/blame.md

Sources are the `sources` and `test-sources` jars of Maven Central under a small pom of our own. Plants are made
by templates of text; places are methods whose name few test classes mention. As in `blame.py` each case is a
line in the results file, only runs in which a failure showed are counted, and `--verify` asks Maven itself.
It needs git, Maven, a JDK and the standard library.
"""

# ruff: noqa: E501 - templates of code have long lines

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import blame_report
from blame_projects import Trouble, call, clean_environment
from blame_states import NOUNS

LIMIT, DRAWS, BASE_RUNS = 900, 40, 5
BEGIN, END = "<!-- bench/blame_java.py begins -->", "<!-- bench/blame_java.py ends -->"

# Artifact, what its tests need, files that are left out.
PROJECTS = """
commons-cli:commons-cli:1.4        | junit:junit:4.13.2 |
commons-cli:commons-cli:1.9.0      | org.junit.jupiter:junit-jupiter:5.10.2 org.mockito:mockito-core:4.11.0 commons-io:commons-io:2.16.1 |
org.apache.commons:commons-csv:1.7 | junit:junit:4.13.2 commons-io:commons-io:2.6 org.apache.commons:commons-lang3:3.9 org.mockito:mockito-core:3.1.0 com.h2database:h2:1.4.199 | PerformanceTest CSVBenchmark
"""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>blame</groupId><artifactId>blame</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
DEPENDENCIES  </dependencies>
  <build><plugins><plugin>
    <artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version>
  </plugin></plugins></build>
</project>
"""
DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><scope>test</scope></dependency>\n"

# Kind, what pollutes, when it is polluted; `$` is a class of our own in the product with the members below.
STATES = [
    ("static map", '$.SEEN.put("key", 1);', "!$.SEEN.isEmpty()"),
    ("static list", '$.NAMES.add("name");', "!$.NAMES.isEmpty()"),
    ("static field", "$.limit = 0;", "$.limit == 0"),
    ("system property", 'System.setProperty("$.mode", "fast");', 'System.getProperty("$.mode") != null'),
    ("default locale", "java.util.Locale.setDefault(new java.util.Locale("
     '"xx"));', 'java.util.Locale.getDefault().getLanguage().equals("xx")'),
    ("time zone", 'java.util.TimeZone.setDefault(new java.util.SimpleTimeZone(42, "$"));', 'java.util.TimeZone.getDefault().getID().equals("$")'),
    ("logger", 'java.util.logging.Logger.getLogger("$").setLevel(java.util.logging.Level.OFF);', '!java.util.logging.Logger.getLogger("$").isLoggable(java.util.logging.Level.SEVERE)'),
    ("thread", 'Thread thread$ = new Thread($::sleep, "$"); thread$.setDaemon(true); thread$.start();', "$.isRunning()"),
]  # fmt: skip
HOLDER = """package PACKAGE;

public final class $ {
    public static final java.util.Map<String, Integer> SEEN = new java.util.concurrent.ConcurrentHashMap<>();
    public static final java.util.List<String> NAMES = new java.util.ArrayList<>();
    public static volatile int limit = 10;
    private $() { }
    public static void sleep() {
        try { Thread.sleep(Long.MAX_VALUE); } catch (InterruptedException error) { Thread.currentThread().interrupt(); }
    }
    public static boolean isRunning() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(thread -> thread.getName().equals("$"));
    }
    public static boolean isLate(long millis) {
        java.util.concurrent.CountDownLatch done = new java.util.concurrent.CountDownLatch(1);
        int work = java.util.concurrent.ThreadLocalRandom.current().nextInt(30);
        new Thread(() -> { try { Thread.sleep(work); } catch (InterruptedException error) { return; } done.countDown(); }).start();
        try { return !done.await(millis, java.util.concurrent.TimeUnit.MILLISECONDS); } catch (InterruptedException error) { return true; }
    }
}
"""
CONDITIONS = {"random": "Math.random() < {rate}", "wait": "$.isLate({millis}L)"}
METHOD = re.compile(r"^    (?:public|protected|static|final|synchronized| )+[\w<>\[\], .?]+ (\w+)\([^;{}]*\)\s*(?:throws [\w., ]+)?\s*\{[ ]*\n", re.M)
TEST = re.compile(r"@Test[^{;]*?void (\w+)\([^)]*\)[^{;]*\{[ ]*\n")


class Project(NamedTuple):
    artifact: str
    requires: str
    left_out: str

    @property
    def name(self) -> str:
        return "-".join(self.artifact.split(":")[1:])


class Bench:
    """The scratch folder in which one case after the other is built and run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.env = options, clean_environment()
        self.folder: Path = options.work / "java"
        self.tree, self.ready = self.folder / "tree", self.folder / "ready"
        self.projects = [Project(*(cell.strip() for cell in line.split("|"))) for line in PROJECTS.strip().splitlines()]
        self.projects = [one for one in self.projects if one.name in (options.only or [one.name])]

    def source(self, project: Project) -> Path:
        """The project under our pom, in a git repository; made once."""
        home = self.folder / "sources" / project.name
        if (home / ".git/ready").exists():
            return home
        shutil.rmtree(home, ignore_errors=True)
        for classifier, places in (("sources", ["main/java"]), ("test-sources", ["test/java", "test/resources"])):
            copy = ["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"]
            call([*copy, f"-Dartifact={project.artifact}:jar:{classifier}", f"-DoutputDirectory={self.folder}"], self.folder, self.env)
            for place in places:
                with zipfile.ZipFile(self.folder / f"{project.name}-{classifier}.jar") as jar:
                    names = [name for name in jar.namelist() if not name.startswith("META-INF") and name.endswith(".java") == place.endswith("java")]
                    jar.extractall(home / "src" / place, [name for name in names if not any(word in name for word in project.left_out.split())])
        dependencies = "".join(DEPENDENCY.format(*word.split(":")) for word in project.requires.split())
        (home / "pom.xml").write_text(POM.replace("DEPENDENCIES", dependencies))
        (home / ".gitignore").write_text("target/\n")
        for words in (["init", "--quiet", "-b", "main"], ["add", "--all"], ["commit", "--quiet", "-m", project.name]):
            call(["git", *words], home, self.env)
        (home / ".git/ready").touch()
        return home

    def git(self, *words: str) -> None:
        call(["git", *words], self.tree, self.env)

    def build(self, kind: str, number: int) -> Dict[str, Any]:
        for draw in range(DRAWS):
            chance = random.Random(f"blame java {self.options.seed} {kind} {number} {draw}")
            project = chance.choice(self.projects)
            shutil.rmtree(self.tree, ignore_errors=True)
            shutil.copytree(self.source(project), self.tree, symlinks=True)
            row = self.plant(kind, chance)
            if row is not None:
                row.update(project=project.name)
                shutil.rmtree(self.ready, ignore_errors=True)
                self.tree.rename(self.ready)
                return row
        raise Trouble(f"no plant fits after {DRAWS} draws")

    def plant(self, kind: str, chance: random.Random) -> Any:
        """Edits the tree and commits base and change; None where no place is found."""
        noun = chance.choice(NOUNS).capitalize() + "Store"
        places = product_methods(self.tree)
        if not places:
            return None
        path, method, tests = chance.choice(places)
        package = re.search(r"^package ([\w.]+);", path.read_text(), re.M)
        if package is None:
            return None
        holder, name = path.parent / f"{noun}.java", f"{package.group(1)}.{noun}"
        family = chance.choice(["leak", "leak", "leak", "chance", "wait"])
        rate = chance.choice([0.35, 0.5, 0.7])
        polluter = None
        if family == "leak":
            state, pollute, condition = chance.choice(STATES)
            others = [one for one in test_methods(self.tree) if one[0] not in tests]
            if not others:
                return None
            polluter = chance.choice(others)
        else:
            state = "random" if family == "chance" else "wait"
            condition = CONDITIONS[state].format(rate=rate, millis=round(30 * (1 - rate)))
        condition = condition.replace("$", name)
        split = chance.choice(["both", "polluter"]) if family == "leak" else "both"
        holder.write_text(HOLDER.replace("PACKAGE", package.group(1)).replace("$", noun))
        read = (path, METHOD, method, f'        if ({condition}) throw new IllegalStateException("{noun} is not ready");\n')
        write = polluter and (polluter[0], TEST, polluter[1], f"        {pollute.replace('$', name)}\n".replace(f"thread{name}", "thread"))
        early, late = ([], [read, write]) if split == "both" else ([read], [write])
        near = ("planted", "function")
        if kind == "innocent":
            early, late, near = [read, write], [], ("unused method", "file")
        for edit in filter(None, early):
            insert(*edit)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "the base")
        self.git("checkout", "--quiet", "-b", "feature")
        for edit in filter(None, late):
            insert(*edit)
        if kind == "innocent":
            text = path.read_text()
            at = text.rindex("}")
            path.write_text(f"{text[:at]}    static String nextReleaseName(String name) {{\n        return name.trim();\n    }}\n{text[at:]}")
        self.git("commit", "--quiet", "--all", "-m", "the change")
        planted = {"family": family, "kind": state, "victims": [], "polluters": [polluter[1]] if polluter else [], "rate": rate if polluter is None else 1.0, "files": [], "note": split}
        return {"planted": planted, "change": near[0], "near": near[1], "setting": {"has_history": False}}

    def fresh(self) -> None:
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.ready, self.tree, symlinks=True)

    def measure(self, kind: str, number: int) -> Dict[str, Any]:
        row = self.build(kind, number)
        row.update(kind_of_case=kind, number=number, seed=self.options.seed, whole=True)
        for attempt in range(1, 2 if row["planted"]["rate"] == 1 else 8):
            self.fresh()
            start = time.monotonic()
            done = subprocess.run([str(self.options.unflake), "run", "--format", "json"], cwd=self.tree, env=self.env, capture_output=True, timeout=LIMIT)
            if not done.stdout.startswith(b"{"):
                raise Trouble(f"unflake gave no report: {done.stderr.decode(errors='replace')[-1500:]}")
            report = json.loads(done.stdout)
            findings = [{"id": one["id"], "verdict": one["verdict"], "is_expected": True, **{key: (one.get("whose") or {}).get(key) for key in ("answer", "because", "sentence")}} for one in report["findings"]]
            row.update(tries=attempt, shown=bool(findings), exit_code=done.returncode, findings=findings, seconds=time.monotonic() - start, too_many=report["too_many_failures"])
            if findings:
                break
        if row["shown"]:
            row["reruns"] = self.ask_reruns()
        return row

    def ask_reruns(self) -> Any:
        """Surefire's own reruns stand where pytest-rerunfailures stands for Python."""
        self.fresh()
        done = subprocess.run(["mvn", "-B", "-o", "test", "-Dsurefire.rerunFailingTestsCount=2"], cwd=self.tree, env=self.env, capture_output=True, timeout=LIMIT)
        failed = b"FAILURE!" in done.stdout or b"Flakes:" in done.stdout
        return {"green": done.returncode == 0, "exit_code": done.returncode} if failed else None

    def check(self, kind: str, number: int) -> Dict[str, Any]:
        """Maven itself with the change and at the base."""
        row = self.build(kind, number)
        seen = []
        for branch in ("feature", "main"):
            self.fresh()
            self.git("checkout", "--quiet", "--force", branch)
            done = subprocess.run(["mvn", "-B", "-q", "test"], cwd=self.tree, env=self.env, capture_output=True, timeout=LIMIT)
            text = done.stdout.decode(errors="replace")
            seen.append(sorted(set(re.findall(r"ERROR\] +([\w.]+:\d+)", text))) if "COMPILATION ERROR" not in text else ["does not compile"])
        row.update(kind_of_case=kind, number=number, shown=bool(seen[0]), failed=seen[0], expected=False, alone=[], base_failed=seen[1])
        return row


def product_methods(tree: Path) -> List[Tuple[Path, str, List[Path]]]:
    """Methods of the product that stand once in their file, and that one to three test classes mention."""
    tests = {path: path.read_text() for path in sorted(tree.glob("src/test/java/**/*Test.java"))}
    found = []
    for path in sorted(tree.glob("src/main/java/**/*.java")):
        names = [match.group(1) for match in METHOD.finditer(path.read_text())]
        for name in names:
            users = [test for test, text in tests.items() if f"{name}(" in text]
            if names.count(name) == 1 and 1 <= len(users) <= 3:
                found.append((path, name, users))
    return found


def test_methods(tree: Path) -> List[Tuple[Path, str]]:
    paths = sorted(tree.glob("src/test/java/**/*Test.java"))
    return [(path, match.group(1)) for path in paths for match in TEST.finditer(path.read_text())]


def insert(path: Path, pattern: "re.Pattern[str]", name: str, line: str) -> None:
    """A line at the beginning of a method."""
    text = path.read_text()
    match = next(match for match in pattern.finditer(text) if match.group(1) == name)
    path.write_text(text[: match.end()] + line + text[match.end() :])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unflake-blame"
    parser.add_argument("--unflake", type=Path, default=Path("target/release/unflake"), help="the binary")
    parser.add_argument("--work", type=Path, default=cache, help="the folder for sources and scratch trees")
    parser.add_argument("--kind", choices=["guilty", "innocent"], default="guilty")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="only the project of this name; may be repeated")
    parser.add_argument("--verify", action="store_true", help="check the plants by Maven; nothing is kept")
    parser.add_argument("--report", action="store_true", help="print the tables of the results file")
    parser.add_argument("--write", type=Path, help="with --report: replace the tables in this page")
    options = parser.parse_args()
    options.work, options.unflake = options.work.resolve(), options.unflake.resolve()
    results = options.work / "results-java.jsonl"
    if options.report:
        return blame_report.report(results, options.write, BEGIN, END)
    bench = Bench(options)
    bench.folder.mkdir(parents=True, exist_ok=True)
    done = {(row["kind_of_case"], row["number"]) for row in blame_report.read_rows(results) if row["seed"] == options.seed and "trouble" not in row}
    rows = []
    for number in range(options.cases):
        if not options.verify and (options.kind, number) in done:
            continue
        start = time.monotonic()
        try:
            row = (bench.check if options.verify else bench.measure)(options.kind, number)
        except (Trouble, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            row = {"kind_of_case": options.kind, "number": number, "seed": options.seed, "trouble": f"{type(error).__name__}: {error}"}
        row["took"] = round(time.monotonic() - start, 1)
        rows.append(row)
        print(blame_report.one_line(row), file=sys.stderr, flush=True)
        if not options.verify:
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(blame_report.verification(rows) if options.verify else blame_report.tables(blame_report.read_rows(results)))
    return 0 if options.verify else blame_report.exit_code(rows, is_sample=False)


if __name__ == "__main__":
    sys.exit(main())

"""What unflake costs on a Maven module: 300 quick JUnit 4 tests in 30 classes, made here.

    python bench/java.py UNFLAKE [ROUNDS]

Each command runs in turn, ROUNDS times (default 3), and the least processor time and wall time are shown.
The module is built before. `mvn` is Maven offline with everything up to date; what it needs before it
starts the tests is measured with -DskipTests and taken off.
"""

import os
import subprocess
import sys
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


def main() -> None:
    unflake = str(Path(sys.argv[1]).resolve())
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_project(folder)
        subprocess.run(["mvn", "-q", "-B", "test"], cwd=folder, check=True)
        subprocess.run([unflake, "list"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = {
            "mvn test": ["mvn", "-o", "-q", "-B", "test"],
            "mvn test -DskipTests": ["mvn", "-o", "-q", "-B", "test", "-DskipTests"],
            "unflake list": [unflake, "list"],
            "unflake run": [unflake, "run"],
            "unflake nio --mode suite": [unflake, "nio", "--mode", "suite"],
            "unflake nio --mode method --jobs 2": [unflake, "nio", "--mode", "method", "--jobs", "2"],
        }
        best: dict[str, tuple[float, float]] = {}
        for _ in range(rounds):
            for name, command in commands.items():
                wall, cpu = measure(command, folder)
                known = best.get(name, (wall, cpu))
                best[name] = (min(known[0], wall), min(known[1], cpu))
    for name, (wall, cpu) in best.items():
        print(f"{name:36} {wall:7.2f} s wall {cpu:7.2f} s processor")
    for at, what in enumerate(["wall", "processor"]):
        phase = best["mvn test"][at] - best["mvn test -DskipTests"][at]
        run = best["unflake run"][at]
        suite = best["unflake nio --mode suite"][at]
        method = best["unflake nio --mode method --jobs 2"][at]
        print(f"{what}: run / test phase {run / phase:.2f}, suite / run {suite / run:.2f},", end=" ")
        print(f"method / suite {method / suite:.1f}")


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    began, before = time.monotonic(), os.times()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, cpu


def write_project(folder: Path) -> None:
    tests = folder / "src/test/java/bench"
    tests.mkdir(parents=True)
    (folder / "pom.xml").write_text(POM)
    for number in range(30):
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

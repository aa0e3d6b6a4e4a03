"""Whether `unflake run` on Maven projects ends as `mvn test` does, test by test.

    python bench/fidelity_java.py UNFLAKE PROJECT [MAVEN ARGS…]

PROJECT is a folder with a pom.xml. Both commands get the Maven arguments. The reports that Surefire wrote
are held against the outcomes of unflake's first runs. A parametrised or dynamic test of Jupiter is one
test for unflake: it must end as the worst of its parts.
"""

import json
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

WORST = ["failed", "passed", "skipped"]


def main() -> int:
    unflake, project, *args = sys.argv[1:]
    folder = Path(project).resolve()
    for old in folder.rglob("surefire-reports"):
        shutil.rmtree(old)
    began = time.monotonic()
    maven = ["mvn", "-B", "-fae", *args, "test", "-Dmaven.test.failure.ignore=true"]
    subprocess.run(maven, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    maven_seconds = time.monotonic() - began
    plain = surefire(folder)
    began = time.monotonic()
    no_reruns = ["--immediate", "0", "--end", "0", "--fresh", "0"]
    command = [unflake, "run", "--format", "json", *no_reruns, "--", *args]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if not run.stdout:
        print(run.stderr)
        return 1
    report = json.loads(run.stdout)
    ours = {}
    for test in report["tests"]:
        outcome = "failed" if test["outcome"] in ("error", "crashed") else test["outcome"]
        ours.setdefault(plain_name(test["id"].replace("#", ".", 1)), []).append(outcome)
    ours = {name: worst(outcomes) for name, outcomes in ours.items()}
    different = sorted(name for name in plain if plain[name] != ours.get(name))
    # Surefire reports a class that is skipped as a whole as one case without a method.
    different = [name for name in different if not is_skipped_class(name, plain, ours)]
    skipped = {name for name in plain if is_skipped_class(name, plain, ours)}
    inside = tuple(f"{one}." for one in skipped)
    more = sorted(name for name in ours if name not in plain and not name.startswith(inside))
    print(f"{folder.name}: Surefire {len(plain)} tests in {maven_seconds:.1f} s,", end=" ")
    print(f"unflake {len(ours)} in {seconds:.1f} s")
    print(f"  alike {len(plain) - len(different)}, different {len(different)}, only unflake {len(more)}")
    for name in different[:20]:
        print(f"  {name}: Surefire {plain[name]}, unflake {ours.get(name)}")
    for name in more[:20]:
        print(f"  {name}: only unflake: {ours[name]}")
    for note in report["notes"]:
        print("  note:", note)
    return 1 if different or more else 0


def is_skipped_class(name: str, plain: dict[str, str], ours: dict[str, str]) -> bool:
    inside = [outcome for test, outcome in ours.items() if test.startswith(f"{name}.")]
    return plain[name] == "skipped" and bool(inside) and set(inside) == {"skipped"}


def surefire(folder: Path) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for file in folder.rglob("surefire-reports/TEST-*.xml"):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                outcome = "failed"
            elif case.find("skipped") is not None:
                outcome = "skipped"
            else:
                outcome = "passed"
            name = case.get("name") or ""
            whole = f"{case.get('classname')}.{name}" if name else case.get("classname") or ""
            if name == case.get("classname"):
                whole = name
            found.setdefault(plain_name(whole), []).append(outcome)
    return {name: worst(outcomes) for name, outcomes in found.items()}


def plain_name(name: str) -> str:
    """A name without the parameters of a method and the number of a part."""
    return re.sub(r"[({\[ ].*", "", name, flags=re.DOTALL)


def worst(outcomes: list[str]) -> str:
    return min(outcomes, key=lambda outcome: WORST.index(outcome) if outcome in WORST else -1)


if __name__ == "__main__":
    sys.exit(main())

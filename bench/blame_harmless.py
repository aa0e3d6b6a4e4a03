"""Changes that make no test fail: what is committed on top of an old flake.

Each says how near it comes to the flaky test: nowhere, another file, the test's own files, or the very
functions that the test calls.
"""

# ruff: noqa: E501 - templates of code have long lines

import ast
import random
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import blame_edits as edits
from blame_plants import Plan
from blame_projects import Site, Survey, functions

Change = Tuple[str, str, List[edits.Edit]]


def draw_harmless(survey: Survey, plan: Plan, chance: random.Random, tree: Path) -> Change:
    """The name of a harmless change, how near it is, and its edits; `tree` has the base in it."""
    victims = {place for place, test in enumerate(survey.tests) if test.id in set(plan.victims)}
    used = [site for site in survey.sites if victims & set(site.calls)]
    unused = [site for site in survey.sites if not victims & set(site.calls)]
    makers: Dict[str, Callable[[], Change]] = {
        "documentation": lambda: ("documentation", "none", [document(tree)]),
        "new module": lambda: ("new module", "none", [edits.write(new_module(survey), NEW)]),
        "unused function": lambda: add(chance.choice(survey.sites), used),
        "comment": lambda: comment(chance.choice(used or survey.sites), used),
        "refactoring": lambda: refactor(chance.choice(used or survey.sites), used, tree, chance),
        "refactoring elsewhere": lambda: refactor(chance.choice(unused), used, tree, chance),
        "new test": lambda: new_test(survey, plan, chance),
        "other test": lambda: other_test(survey, plan, chance),
    }
    return makers[chance.choice(list(makers))]()


def document(tree: Path) -> edits.Edit:
    return edits.append(sorted(tree.glob("README*"))[0].name, "The next release will say more about this.")


def nearness(site: Site, used: List[Site]) -> str:
    if site in used:
        return "function"
    return "file" if site.file in {one.file for one in used} else "other file"


def new_module(survey: Survey) -> str:
    folder = Path(survey.sites[0].file).parent
    return str(folder / "next_release.py")


NEW = '"""What the next release will need."""\n\n\ndef is_ready(name):\n    return name.isidentifier()\n'


def add(site: Site, used: List[Site]) -> Change:
    code = 'def next_release_name(name):\n    """The name under which the next release knows it."""\n    return name.strip().lower()'
    return "unused function", nearness(site, used).replace("function", "file"), [edits.append(site.file, code)]


def comment(site: Site, used: List[Site]) -> Change:
    return "comment", nearness(site, used), [edits.enter(site.file, site.name, ["# The next release does this elsewhere."])]


def refactor(site: Site, used: List[Site], tree: Path, chance: random.Random) -> Change:
    """A returned expression gets a name first, or a line that does nothing is added."""
    text = (tree / site.file).read_text()
    node = functions(text)[site.name]
    returns = [one for one in ast.walk(node) if isinstance(one, ast.Return) and one.value and one.lineno == one.end_lineno]
    lines = text.split("\n")
    plain = [one for one in returns if lines[one.lineno - 1].strip().startswith("return ")]
    if not plain:
        return "refactoring", nearness(site, used), [edits.enter(site.file, site.name, ["_ready = True"])]
    place = chance.choice(plain)

    def edit(where: Path) -> None:
        line = lines[place.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        value = line.encode()[place.col_offset :].decode()[len("return ") :]
        changed = [*lines[: place.lineno - 1], f"{indent}result_ = {value}", f"{indent}return result_", *lines[place.lineno :]]
        edits.rewrite(where / site.file, "\n".join(changed))

    return "refactoring", nearness(site, used), [edit]


def new_test(survey: Survey, plan: Plan, chance: random.Random) -> Change:
    """A test that passes and touches nothing, in the victim's file or another, at its top or end."""
    files = sorted({test.file for test in survey.tests if test.name})
    own = [file for file in files if any(victim.startswith(f"{file}::") for victim in plan.victims)]
    file = chance.choice(own if own and chance.random() < 0.5 else files)
    edit = edits.append if chance.random() < 0.5 else edits.declare
    return "new test", "file" if file in own else "other file", [edit(file, "def test_next_release():\n    assert 1 + 1 == 2\n")]


def other_test(survey: Survey, plan: Plan, chance: random.Random) -> Change:
    """A line that does nothing in another test."""
    involved = {*plan.victims, *plan.polluters}
    names = {(test.file, test.name) for test in survey.tests if test.id in involved}
    others = [test for test in survey.tests if test.name and (test.file, test.name) not in names]
    test = chance.choice(others)
    near = "file" if test.file in {file for file, _ in names} else "other file"
    return "other test", near, [edits.enter(test.file, test.name or "", ["assert True"])]

"""Edits of Python files that planted changes are made of.

An edit finds its place by the name of a function, so that edits of one file do not disturb each other, and
leaves a file that parses, or raises `Unplantable`.
"""

# ruff: noqa: E501 - templates of code have long lines

import ast
import random
import re
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

from blame_projects import first_statement, functions

Edit = Callable[[Path], None]
MUTANTS = {ast.Lt: ">=", ast.Gt: "<=", ast.LtE: ">", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
           ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}  # fmt: skip


class Unplantable(Exception):
    """A place that cannot be edited in the way that was asked for."""


def rewrite(path: Path, text: str) -> None:
    """Writes a file if it is still Python."""
    if path.suffix == ".py":
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise Unplantable(f"{path.name}: {error}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def find(path: Path, name: str) -> Tuple[Any, List[str]]:
    text = path.read_text()
    node = functions(text).get(name)
    if node is None:
        raise Unplantable(f"{path.name} has no plain function {name}")
    return node, text.split("\n")


def enter(file: str, name: str, lines: List[str]) -> Edit:
    """Lines before the first statement of a function."""

    def edit(tree: Path) -> None:
        node, text = find(tree / file, name)
        first = first_statement(node)
        assert first is not None
        if text[first.lineno - 1][: first.col_offset].strip():
            raise Unplantable(f"{name} begins on the line of its signature")
        indent = " " * first.col_offset
        text[first.lineno - 1 : first.lineno - 1] = [indent + line if line else line for line in lines]
        rewrite(tree / file, "\n".join(text))

    return edit


def decorate(file: str, name: str, decorator: str) -> Edit:
    """A decorator right above the `def` of a function."""

    def edit(tree: Path) -> None:
        node, text = find(tree / file, name)
        text.insert(node.lineno - 1, " " * node.col_offset + decorator)
        rewrite(tree / file, "\n".join(text))

    return edit


def declare(file: str, code: str) -> Edit:
    """Code at the top of a file, after the imports that it begins with."""

    def edit(tree: Path) -> None:
        path = tree / file
        text = path.read_text()
        after = 0
        for node in ast.parse(text).body:
            is_doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_doc and not isinstance(node, (ast.Import, ast.ImportFrom)):
                break
            after = node.end_lineno or after
        lines = text.split("\n")
        lines[after:after] = ["", *code.strip("\n").split("\n"), ""]
        rewrite(path, "\n".join(lines))

    return edit


def append(file: str, code: str) -> Edit:
    """Code at the end of a file."""
    return lambda tree: rewrite(tree / file, (tree / file).read_text().rstrip("\n") + "\n\n\n" + code.strip("\n") + "\n")


def write(file: str, code: str) -> Edit:
    """A new file."""
    return lambda tree: rewrite(tree / file, code)


def replace(file: str, old: str, new: str) -> Edit:
    """A piece of text, which is there once, by another."""

    def edit(tree: Path) -> None:
        text = (tree / file).read_text()
        if text.count(old) != 1:
            raise Unplantable(f"{file} has {old!r} {text.count(old)} times")
        rewrite(tree / file, text.replace(old, new))

    return edit


def remove(file: str, old: str) -> Edit:
    return replace(file, old, "")


def move(file: str, to: str) -> Edit:
    return lambda tree: (tree / file).rename(tree / to) and None


def parameter(file: str, name: str, argument: str) -> Edit:
    """One more parameter, the first, of a test function that no decorator passes arguments to."""

    def edit(tree: Path) -> None:
        node, text = find(tree / file, name)
        if any(word in ast.dump(one) for one in node.decorator_list for word in ("patch", "given")):
            raise Unplantable(f"{name} gets its arguments from a decorator")
        at = node.lineno - 1
        line = re.sub(rf"def {re.escape(name)}\(\s*", f"def {name}({argument}, ", text[at], count=1)
        text[at] = line.replace(f"({argument}, )", f"({argument})")
        rewrite(tree / file, "\n".join(text))

    return edit


def mutate(file: str, name: str, condition: str, chance: random.Random) -> Edit:
    """An expression of a function that has another value where a condition holds; `condition` is an expression.

    The choice is made from a seed of its own, so that the edit does the same in every tree.
    """
    seed = chance.random()

    def edit(tree: Path) -> None:
        node, text = find(tree / file, name)
        spots = [spot for one in ast.walk(node) for spot in [mutant(one)] if spot is not None]
        first = first_statement(node)
        spots = [spot for spot in spots if first is not None and spot[0].lineno >= first.lineno]
        if not spots:
            raise Unplantable(f"{name} has nothing to mutate")
        place, other = random.Random(seed).choice(spots)
        line = text[place.lineno - 1].encode()
        code = line[place.col_offset : place.end_col_offset].decode()
        changed = f"(({other.replace('…', code)}) if {condition} else ({code}))"
        text[place.lineno - 1] = (line[: place.col_offset] + changed.encode() + line[place.end_col_offset :]).decode()
        rewrite(tree / file, "\n".join(text))

    return edit


def mutant(node: ast.AST) -> Optional[Tuple[Any, str]]:
    """An expression on one line and what to put in its stead (`…` is the expression itself)."""
    if isinstance(node, ast.Return) and node.value is not None and node.value.lineno == node.value.end_lineno:
        return node.value, "None"
    if not isinstance(node, (ast.Compare, ast.BinOp, ast.Subscript, ast.If)):
        return None
    if isinstance(node, ast.If):
        test = node.test
        return (test, "not (…)") if test.lineno == test.end_lineno else None
    if node.lineno != node.end_lineno:
        return None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in MUTANTS:
        return node, f"{ast.unparse(node.left)} {MUTANTS[type(node.ops[0])]} {ast.unparse(node.comparators[0])}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        return node, f"{ast.unparse(node.left)} {sign} {ast.unparse(node.right)}"
    return None

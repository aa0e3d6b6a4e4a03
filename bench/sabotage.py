"""Breaks everything that a commit changed, so that whoever uses any of it fails.

A test file that is called disjoint from a commit's changes must not notice. This shares no code with what
finds the changes in unflake: functions are matched by name and place and compared as syntax trees here too,
but by other means.

A changed function raises as soon as it runs, a file whose module-level code changed as soon as it is
imported, and any other changed file holds nothing but rubbish. What the commit deleted comes back so too.
"""

import ast
import copy
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Tuple

RAISE = 'raise RuntimeError("sabotage")'
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Place = Tuple[Any, ...]


def break_changes(tree: Path, base: str) -> int:
    """Breaks what differs between `base` and the checked-out commit; returns the number of broken files."""
    status = run_git(tree, "diff", "--name-status", "--no-renames", "-z", base, "HEAD").split("\0")
    changes = list(zip(status[0::2], status[1::2]))
    for kind, name in changes:
        path = tree / name
        is_python = name.endswith(".py")
        if kind == "M" and is_python:
            broken = break_source(run_git(tree, "show", f"{base}:{name}"), path.read_text())
        else:
            broken = RAISE + "\n" if is_python else "sabotage\n"
        if not path.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(broken)
    return len(changes)


def run_git(tree: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=tree).decode(errors="replace")


def break_source(old: str, new: str) -> str:
    """The new version of a source with each changed block broken."""
    try:
        before, after = ast.parse(old), ast.parse(new)
    except SyntaxError:
        return RAISE + "\n"
    if dump_shell(before) != dump_shell(after):
        return RAISE + "\n"
    known = {place: dump_shell(node) for place, node in find_functions(before)}
    changed = [node for place, node in find_functions(after) if known.get(place) != dump_shell(node)]
    text = new.encode()
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for start, end, broken in sorted((find_edit(node, lines) for node in changed), reverse=True):
        text = text[:start] + broken.encode() + text[end:]
    ast.parse(text)
    return text.decode()


def find_edit(node: Any, lines: List[int]) -> Tuple[int, int, str]:
    """The text to write, and its place, so that a function raises before its first statement."""
    if isinstance(node, ast.Lambda):
        body = node.body
        end = lines[(body.end_lineno or 0) - 1] + (body.end_col_offset or 0)
        return lines[body.lineno - 1] + body.col_offset, end, f"exec('{RAISE}')"
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    # The sign before a decorator belongs to it.
    column = first.col_offset
    start = lines[(decorators[0] if decorators else first).lineno - 1] + column
    is_compound = hasattr(first, "body") or hasattr(first, "cases")
    # A compound statement cannot follow another one on the same line.
    return start, start, f"{RAISE}\n{' ' * column}" if is_compound else f"{RAISE}; "


def find_functions(node: Any, place: Place = ()) -> List[Tuple[Place, Any]]:
    """All functions with the names around them and the number of namesakes before them."""
    found: List[Tuple[Place, Any]] = []
    count: Dict[str, int] = {}
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        child = waiting.pop(0)
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = getattr(child, "name", "<lambda>")
            count[name] = count.get(name, 0) + 1
            inner = (*place, name, count[name])
            if isinstance(child, FUNCTIONS):
                found.append((inner, child))
            found.extend(find_functions(child, inner))
        else:
            waiting = list(ast.iter_child_nodes(child)) + waiting
    return found


class Hollow(ast.NodeTransformer):
    """Empties the functions inside a node, docstrings left where they are."""

    def visit_function(self, node: Any) -> Any:
        if isinstance(node, ast.Lambda):
            node.body = ast.Constant(value=None)
        else:
            doc = ast.get_docstring(node, clean=False)
            node.body = [ast.Expr(value=ast.Constant(value=doc))]
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function


def dump_shell(node: Any) -> str:
    """A node as text without the bodies of the functions inside it."""
    node = copy.deepcopy(node)
    if isinstance(node, ast.Lambda):
        return ast.dump(Hollow().visit(ast.Expr(value=node.body)))
    return ast.dump(Hollow().generic_visit(ast.Module(body=node.body, type_ignores=[])))

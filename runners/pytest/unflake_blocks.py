"""Tells which blocks of a Python file differ between two versions of it.

A block is the body of a function or lambda; all the rest of a file (module-level code, class bodies,
and of each function its name, decorators, parameters, defaults, annotations, docstring and whether it
is a generator) is the file's own block, which runs at import. Blocks are compared as syntax trees, so
comments and layout make no difference.

Reads a JSON array of pairs of files, old and new, from standard input and writes a JSON array: for each
pair `null` if it cannot be parsed, else what differs. It imports nothing of the project.
"""

import ast
import json
import sys
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


class Block:
    """A function, or a whole file without its functions' bodies."""

    def __init__(self, name: str, node: Any = None) -> None:
        self.name, self.node = name, node
        self.text = ""
        self.inner: List[Block] = []

    def keyed(self, prefix: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], "Block"]]:
        """All functions inside, each under a key that its counterpart in another version has too."""
        seen: Dict[str, int] = {}
        for block in self.inner:
            place = seen.get(block.name, 0)
            seen[block.name] = place + 1
            key = (*prefix, block.name, place)
            yield key, block
            yield from block.keyed(key)


def read_blocks(source: bytes) -> Block:
    whole = Block("")
    whole.text = render(ast.parse(source), whole, "")
    return whole


def render(node: Any, block: Block, scope: str) -> str:
    """The syntax tree as text, bodies of functions left out: they become blocks of their own."""
    if isinstance(node, list):
        return "[" + ",".join(render(one, block, scope) for one in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    kind = type(node).__name__
    fields = list(ast.iter_fields(node))
    if isinstance(node, FUNCTIONS):
        name = scope + getattr(node, "name", "<lambda>")
        inner = Block(name, node)
        block.inner.append(inner)
        inner.text = render(node.body, inner, name + ".")
        fields = [(field, value) for field, value in fields if field != "body"]
        doc = None if isinstance(node, ast.Lambda) else ast.get_docstring(node, clean=False)
        kind = f"{kind}:{is_generator(node)}:{doc!r}"
    elif isinstance(node, ast.ClassDef):
        # Its name is part of the names inside, its header and body are of the block around it.
        inside = scope + node.name + "."
        parts = [
            (field, render(value, block, inside if field == "body" else scope)) for field, value in fields
        ]
        return f"{kind}({','.join(f'{field}={text}' for field, text in parts)})"
    return f"{kind}({','.join(f'{field}={render(value, block, scope)}' for field, value in fields)})"


def is_generator(function: Any) -> bool:
    """Whether calling it runs nothing of its body."""
    body = function.body if isinstance(function.body, list) else [function.body]
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def compare(old: bytes, new: bytes) -> Optional[Dict[str, Any]]:
    try:
        before, after = read_blocks(old), read_blocks(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    known = {key: block.text for key, block in before.keyed()}
    functions = []
    for key, block in after.keyed():
        node = block.node
        decorators = getattr(node, "decorator_list", [])
        functions.append(
            {
                "name": block.name,
                "starts": sorted({node.lineno, *(one.lineno for one in decorators[:1])}),
                "first": node.lineno,
                "last": node.end_lineno,
                "changed": known.get(key) != block.text,
            }
        )
    return {"changed": before.text != after.text, "functions": functions}


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def main() -> None:
    warnings.simplefilter("ignore")  # Odd escapes in the project's strings are not our business.
    pairs = json.load(sys.stdin)
    json.dump([compare(read(old), read(new)) for old, new in pairs], sys.stdout)


if __name__ == "__main__":
    main()

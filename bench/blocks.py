"""The share of edits of function bodies that also change what runs at import.

    python3 bench/blocks.py REPOSITORY... [--commits 300]

Each repository is a clone with its history. Of the newest commits without merges, each edited Python file
outside of tests is compared with its parent by the runner's own comparison. An edit counts if it changes the
body of a function that both versions have. What else it changes in the file's own block is told by its kind:
a docstring, an import, or anything else of the module.
"""

import argparse
import ast
import pathlib
import subprocess
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "runners" / "pytest"))

import unflake_blocks as blocks  # noqa: E402

KINDS = ["only bodies", "docstrings too", "imports too", "other module code too"]


def git(repository: pathlib.Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def edits(repository: pathlib.Path, commits: int) -> "list[tuple[bytes, bytes]]":
    """Old and new text of each edited source."""
    found = []
    listed = git(repository, "log", "--no-merges", f"-{commits}", "--format=%H", "--diff-filter=M").split()
    for commit in map(bytes.decode, listed):
        try:
            changed = git(repository, "diff", "--name-only", "--diff-filter=M", f"{commit}^", commit)
            for name in changed.decode().split("\n"):
                path = pathlib.PurePosixPath(name)
                if path.suffix == ".py" and not any("test" in part for part in path.parts):
                    found.append(
                        tuple(git(repository, "show", f"{one}:{name}") for one in (f"{commit}^", commit))
                    )
        except subprocess.CalledProcessError:
            continue  # The first commit, and blobs that the clone does not have.
    return found


class Plain(ast.NodeTransformer):
    """A module without docstrings of functions, and, if asked, without imports."""

    def __init__(self, has_imports: bool) -> None:
        self.has_imports = has_imports

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Import(self, node: ast.AST) -> "ast.AST | None":
        return node if self.has_imports else None

    visit_ImportFrom = visit_Import


def own_block(source: bytes, has_docs: bool, has_imports: bool) -> str:
    tree = ast.parse(source)
    if not (has_docs and has_imports):
        tree = Plain(has_imports).visit(tree)
    return blocks.render(tree, blocks.Block(""), "")


def kind_of(old: bytes, new: bytes) -> "str | None":
    """The changes of an edit besides bodies; `None` if it changes no body, or cannot be parsed."""
    told = blocks.compare(old, new)
    if told is None:
        return None
    before = {key for key, _ in blocks.read_blocks(old).keyed()}
    keys = [key for key, _ in blocks.read_blocks(new).keyed()]
    changed = [
        key for key, one in zip(keys, told["functions"], strict=True) if one["changed"] and key in before
    ]
    if not changed:
        return None
    if not told["changed"]:
        return KINDS[0]
    if own_block(old, False, True) == own_block(new, False, True):
        return KINDS[1]
    if own_block(old, False, False) == own_block(new, False, False):
        return KINDS[2]
    return KINDS[3]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", nargs="+", type=pathlib.Path)
    parser.add_argument("--commits", type=int, default=300)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| project | edits of bodies | {' | '.join(KINDS)} |\n|---|---|{'---|' * len(KINDS)}")
    total = dict.fromkeys(KINDS, 0)
    for repository in arguments.repositories:
        kinds = [kind for old, new in edits(repository, arguments.commits) if (kind := kind_of(old, new))]
        counts = {kind: kinds.count(kind) for kind in KINDS}
        for kind, count in counts.items():
            total[kind] += count
        print(row(repository.name, counts))
    print(row("all", total))


def row(name: str, counts: "dict[str, int]") -> str:
    whole = sum(counts.values())
    shares = [f"{count} ({count / max(whole, 1):.0%})" for count in counts.values()]
    return f"| {name} | {whole} | {' | '.join(shares)} |"


if __name__ == "__main__":
    main()

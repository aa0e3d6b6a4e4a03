"""Rewrites a module so that it tells of each call that it makes.

`f(x)` becomes `end(7, begin(7, f)(x))`, where 7 is the number of the place. The call itself stays where it
was, in the same frame: whoever looks at the stack, `super()` and `warnings.warn` among them, sees no
difference. An exception goes past `end`, and is noticed when the frame makes its next call or ends one.
"""

import ast
from typing import Any, FrozenSet, List, NamedTuple, Optional, Tuple, Union

BEGIN, END, WAITS, WAITED = "@unflake_begin", "@unflake_end", "@unflake_waits", "@unflake_waited"
# They ask about the frame or say nothing that could be another in the next run.
LEFT_ALONE = frozenset(
    (
        *("super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"),
        *("isinstance", "issubclass", "hasattr", "callable", "range", "type", "id"),
    )
)
# What pytest calls in an assertion that it has rewritten.
OWN_OF_PYTEST = frozenset(("@pytest_ar", "@py_builtins"))
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Site(NamedTuple):
    """A place that calls something."""

    file: str
    line: int
    column: int
    caller: str
    # The calls in whose arguments it stands, and the innermost of them.
    around: FrozenSet[int]
    inside: Optional[int]
    is_async: bool


# By their numbers.
SITES: List[Site] = []


def instrument(tree: ast.Module, file: str) -> None:
    """Rewrites a module that was parsed from `file`, a path from the project's root."""
    Rewriter(file).visit(tree)


class Rewriter(ast.NodeTransformer):
    def __init__(self, file: str) -> None:
        self._file = file
        self._names: List[str] = []
        self._around: Tuple[int, ...] = ()
        self._is_async = False

    # --- where calls stand ----------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node, is_async=False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node, is_async=True)

    def _function(self, node: Function, is_async: bool) -> Any:
        # Annotations are left alone: they may be turned back into text.
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        kept = self._is_async, self._around
        self._is_async, self._around = is_async, ()
        self._body(node)
        self._is_async, self._around = kept
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.bases = [self.visit(one) for one in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        self._body(node)
        return node

    def _body(self, node: Any) -> None:
        self._names.append(node.name)
        node.body = [self.visit(one) for one in node.body]
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        kept = self._is_async, self._around
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        self._is_async, self._around = False, ()
        node.body = self.visit(node.body)
        self._is_async, self._around = kept
        return node

    # --- calls ----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        # What is called is known before the arguments are.
        node.func = self.visit(node.func)
        if self._is_left_alone(node):
            node.args = [self.visit(one) for one in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        number = self._number(node)
        kept = self._around
        self._around = (*kept, number)
        node.args = [self.visit(one) for one in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        self._around = kept
        node.func = told(BEGIN, number, node.func)
        return told(END, number, node)

    def visit_Await(self, node: ast.Await) -> Any:
        number = self._number(node)
        node.value = told(WAITS, number, self.visit(node.value))
        return told(WAITED, number, node)

    def _is_left_alone(self, node: ast.Call) -> bool:
        name = first_name(node.func)
        inside = [first_name(one.func) for one in node.args if isinstance(one, ast.Call)]
        if not OWN_OF_PYTEST.isdisjoint((name, *inside)):
            return True
        if isinstance(node.func, ast.Name) and name in LEFT_ALONE:
            return True
        # While a generator or a task is suspended in the arguments, others run.
        return any(suspends(one) for one in (*node.args, *node.keywords))

    def _number(self, node: Any) -> int:
        caller = ".".join(self._names) or "<module>"
        inside = self._around[-1] if self._around else None
        place = (self._file, node.lineno, node.col_offset + 1)
        SITES.append(Site(*place, caller, frozenset(self._around), inside, self._is_async))
        return len(SITES) - 1


def told(function: str, number: int, value: ast.expr) -> ast.Call:
    name = ast.copy_location(ast.Name(function, ast.Load()), value)
    constant = ast.copy_location(ast.Constant(number), value)
    return ast.copy_location(ast.Call(name, [constant, value], []), value)


def first_name(node: ast.AST) -> str:
    """`a` of `a.b.c`; nothing of anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def suspends(node: ast.AST) -> bool:
    kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor)
    is_async = any(getattr(one, "is_async", 0) for one in ast.walk(node))
    return is_async or any(isinstance(one, kinds) for one in ast.walk(node))

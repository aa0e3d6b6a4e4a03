"""Rewrites a module so that it tells of each call that it makes.

`f(x)` becomes `end(begin(7, f), f(x))`, where 7 is the number of the place: what `begin` returns, the time,
waits on the frame's own stack until the call has returned, so that each end knows its beginning, however
many calls between them were left by an exception. `a.m(x)` becomes `end(reach(7, a), a.m(x))`. Where the
function is more than a name, or a name's attribute, looking it up twice could do something twice, so
`a.b.m(x)` becomes `end(when(7), call(7, a.b.m)(x))`. The call itself stays where it was, in the same frame:
whoever looks at the stack, `super()` and `warnings.warn` among them, sees no difference.
"""

import ast
from typing import Any, Dict, List, NamedTuple, Optional, Set, Union

# The functions that rewritten code calls are in `builtins`, under names that begin with this.
PREFIX = "@unflake_"
# They ask about the frame or say nothing that could be another in the next run.
LEFT_ALONE = frozenset(
    (
        *("super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"),
        *("isinstance", "issubclass", "hasattr", "callable", "range", "type", "id"),
    )
)
# They look at what they are given in its own order.
IN_ORDER = frozenset(
    ("list", "tuple", "iter", "enumerate", "sum", "map", "filter", "zip", "reduce", "join", "extend", "chain")
)
# These have an order, or none that anybody sees.
ORDERED = (
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.ListComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.Starred,
)
# The functions that pytest calls in an assertion that it has rewritten.
OWN_OF_PYTEST = frozenset(("@pytest_ar", "@py_builtins"))
LOAD = ast.Load()
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Place(NamedTuple):
    """A place that calls something."""

    file: str
    line: int
    last_line: int
    column: int
    caller: str
    # The innermost call in whose arguments it stands.
    inside: Optional[int]
    is_async: bool
    # Of `a.m(x)`, the `m` that is really looked up.
    attribute: str
    # Whether it is in an installed package.
    is_library: bool = False


# By their numbers.
PLACES: List[Place] = []
# The places of files that were rewritten and have no numbers yet: in the code, the number within the file is
# the second part of a complex one whose first part nobody else uses.
PENDING: Dict[str, List[Place]] = {}
FIRST = 1.2345678901234567e-89
# The rewritten files, from the project's folder, by what their code says they are.
FILES: Dict[str, str] = {}


def instrument(tree: ast.Module, file: str) -> None:
    """Rewrites a module that was parsed from `file`, a path from the project's root."""
    suspending: Set[int] = set()
    if any(is_suspending(node) for node in ast.walk(tree)):
        mark_suspending(tree, suspending)
    PENDING[file] = []
    Rewriter(file, suspending, PENDING[file]).visit(tree)


class Rewriter(ast.NodeTransformer):
    is_library = False

    def __init__(self, file: str, suspending: Set[int], places: List[Place]) -> None:
        self._file, self._suspending, self._places = file, suspending, places
        self._names: List[str] = []
        self._classes: List[str] = []
        self._inside: Optional[int] = None
        self._is_async = self._is_class = False

    # --- where calls stand ----------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._function(node, is_async=False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._function(node, is_async=True)

    def _function(self, node: Function, is_async: bool) -> Any:
        # Annotations are left alone: they may be turned back into text.
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        self._defaults(node.args)
        kept = self._is_async, self._is_class, self._inside
        self._is_async, self._is_class, self._inside = is_async, False, None
        self._body(node)
        self._is_async, self._is_class, self._inside = kept
        return node

    def _defaults(self, args: ast.arguments) -> None:
        args.defaults = [self.visit(one) for one in args.defaults]
        args.kw_defaults = [one and self.visit(one) for one in args.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.bases = [self.visit(one) for one in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        kept, self._is_class = self._is_class, True
        self._classes.append(node.name)
        self._body(node)
        self._classes.pop()
        self._is_class = kept
        return node

    def _body(self, node: Any) -> None:
        self._names.append(node.name)
        node.body = [self.visit(one) for one in node.body]
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_TypeAlias(self, node: Any) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self._defaults(node.args)
        kept = self._is_async, self._is_class, self._inside
        self._is_async, self._is_class, self._inside = False, False, None
        self._names.append("<lambda>")
        node.body = self.visit(node.body)
        self._names.pop()
        self._is_async, self._is_class, self._inside = kept
        return node

    def visit_For(self, node: ast.For) -> Any:
        site = self._order_site(node.iter)
        self.generic_visit(node)
        node.iter = watched(node.iter, site)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        site = None if node.is_async else self._order_site(node.iter)
        self.generic_visit(node)
        node.iter = watched(node.iter, site)
        return node

    def _order_site(self, node: ast.expr) -> Optional[ast.Constant]:
        """The place at which it can be told in which order a set is gone through."""
        is_range = isinstance(node, ast.Call) and first_name(node.func) == "range"
        if self._is_class or is_range or isinstance(node, ORDERED):
            return None
        return constant(complex(FIRST, self._number(node)), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        # Only its first iterable is looked at now; the rest runs whenever somebody asks.
        first = node.generators[0]
        site = None if first.is_async else self._order_site(first.iter)
        first.iter = watched(self.visit(first.iter), site)
        kept, self._inside = self._inside, None
        self._names.append("<genexpr>")
        node.elt = self.visit(node.elt)
        node.generators[1:] = [self.visit(one) for one in node.generators[1:]]
        first.target = self.visit(first.target)
        first.ifs = [self.visit(condition) for condition in first.ifs]
        self._names.pop()
        self._inside = kept
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        self.generic_visit(node)
        if self._is_class:
            return node
        first = node.body[0]
        node.body.insert(0, ast.Expr(ask("caught", first), **where_is(first)))
        return node

    # --- calls ----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        # The function that is called is known before its arguments are.
        is_left_alone = self._is_left_alone(node)
        is_plain, is_in_order = is_repeatable(node.func), last_name(node.func) in IN_ORDER
        if not is_plain:
            node.func = self.visit(node.func)
        if is_left_alone:
            self._arguments(node)
            return node
        number = self._number(node)
        kept, self._inside = self._inside, number
        sites = [self._order_site(one) if is_in_order else None for one in node.args]
        self._arguments(node)
        node.args = [watched(one, site) for one, site in zip(node.args, sites)]
        self._inside = kept
        site = constant(complex(FIRST, number), node)
        if not is_plain:
            node.func = ask("call", node.func, site, node.func)
            return ask("end", node, ask("when", node, site), node)
        looked_at = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        begin = "reach" if isinstance(node.func, ast.Attribute) else "begin"
        begun = ask(begin, node, site, again(looked_at))
        if self._is_async:
            begun = ask("tasked", node, begun)
        return ask("end", node, begun, node)

    def _arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(one) for one in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Await(self, node: ast.Await) -> Any:
        site = constant(complex(FIRST, self._number(node)), node)
        value = self.visit(node.value)
        node.value = ask("waits", value, site, value)
        return ask("waited", node, site, node)

    def _is_left_alone(self, node: ast.Call) -> bool:
        name = first_name(node.func)
        inside = [first_name(one.func) for one in node.args if isinstance(one, ast.Call)]
        if not OWN_OF_PYTEST.isdisjoint((name, *inside)):
            return True
        if isinstance(node.func, ast.Name) and name in LEFT_ALONE:
            return True
        if self._is_class:
            return True  # A class's body may look for names, ours too, in something that is no plain dict.
        # While a generator or a task is suspended in the arguments, others run.
        return any(id(one) in self._suspending for one in (*node.args, *node.keywords))

    def _number(self, node: Any) -> int:
        caller = ".".join(self._names) or "<module>"
        function = getattr(node, "func", None)
        attribute = function.attr if isinstance(function, ast.Attribute) else ""
        if attribute.startswith("__") and not attribute.endswith("__") and self._classes:
            attribute = f"_{self._classes[-1].lstrip('_')}{attribute}"
        place = (self._file, node.lineno, node.end_lineno or node.lineno, node.col_offset + 1)
        found = Place(*place, caller, self._inside, self._is_async, attribute, self.is_library)
        self._places.append(found)
        return len(self._places) - 1


def ask(function: str, where: Any, *values: ast.expr) -> ast.Call:
    """A call of one of our functions, which stands where something else stood."""
    place = where_is(where)
    return ast.Call(ast.Name(PREFIX + function, LOAD, **place), list(values), [], **place)


def watched(node: ast.expr, site: Optional[ast.Constant]) -> ast.expr:
    """What is gone through in its own order, which is told if it is a set's."""
    return node if site is None else ask("each", node, site, node)


def constant(value: Any, where: Any) -> ast.Constant:
    return ast.Constant(value, **where_is(where))


def where_is(node: Any) -> Dict[str, Any]:
    place = {"lineno": node.lineno, "col_offset": node.col_offset}
    place.update(end_lineno=node.end_lineno, end_col_offset=node.end_col_offset)
    return place


def is_repeatable(function: ast.expr) -> bool:
    """Whether what is called, or on what, can be looked up twice."""
    if isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, (ast.Name, ast.Constant))


def again(node: Any) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, LOAD, **where_is(node))
    return constant(node.value, node)


def first_name(node: ast.AST) -> str:
    """`a` of `a.b.c`; nothing of anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, and `a` of `a`; nothing of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else first_name(node)


def is_suspending(node: ast.AST) -> bool:
    kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor)
    return isinstance(node, kinds) or bool(getattr(node, "is_async", 0))


def mark_suspending(node: ast.AST, found: Set[int]) -> bool:
    """Collects the nodes in which a generator or a task may be suspended."""
    inside = [mark_suspending(one, found) for one in ast.iter_child_nodes(node)]
    if is_suspending(node) or any(inside):
        found.add(id(node))
        return True
    return False

"""Statements of a source file by line: which throw a value away, which names are never read."""

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"}


class Statement(NamedTuple):
    """A simple statement, and the function that it stands in."""

    node: ast.stmt
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    looped: bool = False  # it may run again, so that what stands before it comes after it
    conditional: bool = False

    @property
    def called(self) -> str:
        """Of a bare call, the last part of what is called: `masked_fill`; of a bare sum, `add`;
        else ""."""
        call = self.node.value if isinstance(self.node, ast.Expr) else None
        if isinstance(call, ast.BinOp):
            return OPERATORS.get(type(call.op), "")
        function = call.func if isinstance(call, ast.Call) else None
        if isinstance(function, ast.Attribute):
            return function.attr
        return function.id if isinstance(function, ast.Name) else ""

    @property
    def of_self(self) -> bool:
        """Of a bare call: whether it is `self.NAME(...)`."""
        call = self.node.value if isinstance(self.node, ast.Expr) else None
        function = call.func if isinstance(call, ast.Call) else None
        owner = function.value if isinstance(function, ast.Attribute) else None
        return isinstance(owner, ast.Name) and owner.id == "self"

    @property
    def unread_name(self) -> str:
        """The one variable that it assigns, where the function never reads it; else ""."""
        node = self.node
        targets = node.targets if isinstance(node, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or self.function is None:
            return ""
        name = targets[0].id
        given = {a.arg for a in (*self.function.args.args, *self.function.args.kwonlyargs)}
        if self.conditional and name in given:  # a default that only some paths need
            return ""
        after = 0 if self.looped else node.end_lineno or node.lineno
        return "" if name.startswith("_") or _is_read(self.function, name, after) else name


@lru_cache(maxsize=64)
def statements(file: str) -> dict[int, Statement]:
    """The simple statement that stands at each line of a file; {} where it cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    return {
        line: statement
        for statement in _simple(tree.body, None)
        for line in range(statement.node.lineno, (statement.node.end_lineno or 0) + 1)
    }


def _simple(
    body: list[ast.stmt],
    function: ast.FunctionDef | ast.AsyncFunctionDef | None,
    looped: bool = False,
    conditional: bool = False,
) -> Iterator[Statement]:
    for node in body:
        inner = node if isinstance(node, FUNCTIONS) else function
        blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
        if not any(isinstance(block, list) for block in blocks):
            yield Statement(node, function, looped, conditional)
        for block in blocks:
            if isinstance(block, list):
                again = (looped and inner is function) or isinstance(node, (ast.For, ast.While))
                branch = inner is function and (conditional or isinstance(node, (ast.If, ast.Try)))
                yield from _simple(block, inner, again, branch)


def _is_read(function: ast.AST, name: str, after: int) -> bool:
    """Whether a name is read in a function behind a line; inner functions may run at any time."""
    reads = _reads(function)
    return name in reads and (reads[name] > after or "locals" in reads)


@lru_cache(maxsize=256)
def _reads(function: ast.AST) -> dict[str, float]:
    """By name, the last line of a function that reads it."""
    found: dict[str, float] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            found[node.id] = max(found.get(node.id, 0), node.lineno)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= dict.fromkeys(node.names, float("inf"))
        elif isinstance(node, (*FUNCTIONS, ast.Lambda)) and node is not function:
            inner = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            found |= {n.id: float("inf") for n in inner if not isinstance(n.ctx, ast.Store)}
    return found

"""Statements of a source file by line: which throw a value away, which names are never read."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Statement(NamedTuple):
    """A simple statement, and the function that it stands in."""

    node: ast.stmt
    function: ast.FunctionDef | ast.AsyncFunctionDef | None

    @property
    def called(self) -> str:
        """Of a bare call, the last part of what is called: `masked_fill`; else ""."""
        call = self.node.value if isinstance(self.node, ast.Expr) else None
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
        return "" if name.startswith("_") or name in _names_read(self.function) else name


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
    body: list[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef | None
) -> Iterator[Statement]:
    for node in body:
        inner = node if isinstance(node, FUNCTIONS) else function
        blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
        if not any(isinstance(block, list) for block in blocks):
            yield Statement(node, function)
        for block in blocks:
            if isinstance(block, list):
                yield from _simple(block, inner)


@lru_cache(maxsize=256)
def _names_read(function: ast.AST) -> frozenset[str]:
    """Every name that is read in a function; all names where it asks for its `locals`."""
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name))
    read = {n.id for n in names if not isinstance(n.ctx, ast.Store)}
    shared = (n for n in ast.walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)))
    return frozenset(read.union(*(n.names for n in shared)))

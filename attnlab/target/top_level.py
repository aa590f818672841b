"""The names that a source file binds at its top level, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from attnlab.errors import Refused
from attnlab.suggest import did_you_mean


def read_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """The names of the top level, those inside `if`, `try` and `with` included, and the statement
    that binds each last."""
    return {name: node for node in _statements(body) for name in bound_names(node)}


def may_bind_more(names: Collection[str]) -> bool:
    """Whether a `from x import *` or a `__getattr__` may give more names."""
    return "*" in names or "__getattr__" in names


def bound_names(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    targets = list(node.targets) if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    nodes = [n for target in targets for n in ast.walk(target)]
    return [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported, blocks opened."""
    for node in body:
        yield node
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if is_demo(node):
            yield from _statements(node.orelse if isinstance(node, ast.If) else [])
            continue
        for block in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, block, []))
        for handler in getattr(node, "handlers", []):
            yield from _statements(handler.body)


def is_demo(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`"""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(side) for side in (node.test.left, *node.test.comparators)}
    return {"__name__", "'__main__'"} <= sides


def no_such_name(file: str, name: str, names: Collection[str], classes: Collection[str]) -> Refused:
    """The error of a file that does not define what is looked for."""
    defines = f"It defines {', '.join(classes) or 'no class'}."
    return Refused(f"{file} defines no {name}", did_you_mean(name, names) or defines, file)

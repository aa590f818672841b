"""The integers that a file gives names to, and where they are the defaults of arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from operator import add, floordiv, mul, sub

from attnlab.target.top_level import bound_names

ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
}


def integer_constants(body: list[ast.stmt]) -> dict[str, int]:
    """The names that are assigned an integer, or a product or sum of such names."""
    found: dict[str, int] = {}
    for node in body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        size = _size(value, found)
        if size is not None:
            found |= dict.fromkeys(bound_names(node), size)
    return found


def _size(node: ast.expr | None, known: Mapping[str, int]) -> int | None:
    """The integer that an expression means; None where it is none, or not known."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.BinOp) or type(node.op) not in ARITHMETIC:
        return None
    left, right = _size(node.left, known), _size(node.right, known)
    if left is None or right is None or (not right and isinstance(node.op, ast.FloorDiv)):
        return None
    return ARITHMETIC[type(node.op)](left, right)


def fill_in_defaults(tree: ast.Module, known: Mapping[str, int]) -> None:
    """`def __init__(self, d_model=D_MODEL)` says what D is where the file says what D_MODEL is."""

    def filled(node: ast.expr) -> ast.expr:
        size = _size(node, known)
        return node if size is None else ast.copy_location(ast.Constant(size), node)

    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            node.defaults = [filled(value) for value in node.defaults]
            node.kw_defaults = [value and filled(value) for value in node.kw_defaults]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            node.value = filled(node.value)

"""What the text of a file says of numbers that are brought to mean 0 and back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told

MEAN = re.compile(r"(^|_)means?(_|$)", re.IGNORECASE)
SPREAD = re.compile(r"(^|_)(stds?|stdev|std_dev)(_|$)", re.IGNORECASE)
SHIFT = re.compile(r"bias|beta|shift|^b$", re.IGNORECASE)


def turned_scales(tree: ast.Module) -> Iterator[Told]:
    """`x * mean + std`, `(x - std) / mean`, `x - mean / std`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp):
            continue
        left, right = node.left, node.right
        if isinstance(left, ast.BinOp) and isinstance(node.op, ast.Add) and _is(right, SPREAD):
            if isinstance(left.op, ast.Mult) and _is(left.right, MEAN):
                yield _told(node, "numbers are brought back with x * std + mean")
        elif isinstance(left, ast.BinOp) and isinstance(node.op, ast.Div) and _is(right, MEAN):
            if isinstance(left.op, ast.Sub) and _is(left.right, SPREAD):
                yield _told(node, "numbers are brought to mean 0 with (x - mean) / std")
        elif isinstance(node.op, ast.Sub) and isinstance(right, ast.BinOp):
            quotient = isinstance(right.op, ast.Div) and _is(right.left, MEAN)
            plain = isinstance(left, ast.Name | ast.Attribute | ast.Subscript)
            named = SHIFT.search(ast.unparse(left))
            if quotient and _is(right.right, SPREAD) and plain and not named:
                yield _told(node, "the division comes first here: write (x - mean) / std")


def _is(node: ast.expr, kind: re.Pattern[str]) -> bool:
    """Whether the last name of a value says that it is a mean, or a spread."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return bool(kind.search(str(getattr(node, "attr", getattr(node, "id", "")))))


def _told(node: ast.BinOp, right: str) -> Told:
    return Told(node.lineno, "scale-turned", f"`{ast.unparse(node)[:60]}`: {right}")


RULES = (turned_scales,)

"""What the text of a file says of the side on which sequences are padded, and what goes against
it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from attnlab.target.source_walk import Function, Told, line_of, scopes

# That padding stands in front, as a comment or docstring says it, or as code puts it there.
SAID = re.compile(r"left[- _]?pad|pad\w* (on|at|to) the (left|front|beginning)", re.IGNORECASE)
DONE = re.compile(
    r"\[[^\]\n]*(\w+ - len\(\w+\)|-len\(\w+\)):\] = "
    r"|F\.pad\([^\n]*, \(\w[^\n,]* - len\([^\n]*\), 0\)"
    r"|padding_side=.left.|\[(pad\w*|PAD\w*|0)\] \* \([^)\n]*- len\(\w+\)\) \+"
)
LAST = re.compile(r"\.sum\((dim=)?(1|-1)\) - 1$")
KEPT = re.compile(r"eye\(|nan_to_num|diagonal\(|fill_diagonal|finfo|-1e\d|-\d+(\.\d+)?e\d")


def ends_of_left_padding(tree: ast.Module) -> Iterator[Told]:
    """`h[rows, lengths - 1]` where padding stands in front: the last token is at -1."""
    side = padded_in_front(tree)
    for _, nodes in scopes(tree) if side else ():
        lengths = {
            ast.unparse(n.targets[0]): n.lineno
            for n in nodes
            if isinstance(n, ast.Assign) and LAST.search(ast.unparse(n.value))
        }
        for node in nodes:
            index = node.slice if isinstance(node, ast.Subscript) else None
            parts = [ast.unparse(e) for e in getattr(index, "elts", ())]
            if len(parts) == 2 and "arange" in parts[0] and parts[1] in lengths:
                yield Told(
                    line_of(node),
                    "end-of-left-padding",
                    f"{ast.unparse(node)[:70]} reads position {parts[1]}, the number of tokens "
                    f"less one (line {lengths[parts[1]]}), and sequences are padded in front "
                    f"({side}): the last token stands at [:, -1]",
                )


def rows_before_left_padding(tree: ast.Module) -> Iterator[Told]:
    """A causal mask and one of padding, where padding stands in front: its rows see no key."""
    side = padded_in_front(tree)
    text = ast.unparse(tree)
    if not side or KEPT.search(text) or not re.search(r"float\('-inf'\)|-math\.inf", text):
        return
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        triangles = {
            ast.unparse(n.targets[0])
            for n in nodes
            if isinstance(n, ast.Assign) and re.search(r"tri[lu]_?\(", ast.unparse(n.value))
        }
        for node in nodes:
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)):
                continue
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if names & triangles and len(names) > 1:
                yield Told(
                    node.lineno,
                    "empty-rows",
                    f"{ast.unparse(node)[:70]}: sequences are padded in front ({side}), so the "
                    "first rows may see neither padding nor what comes after them, all their "
                    "scores are -inf, and softmax makes NaN of them. Let each row see itself",
                )
                return


def padded_in_front(tree: ast.Module) -> str:
    """How the file says that it pads in front; "" where it does not."""
    for node in ast.walk(tree):
        said = SAID.search(str(node.value)) if _is_text(node) else None
        if said:
            return f'"{said[0]}", line {line_of(node)}'
        simple = isinstance(node, ast.Assign | ast.Return | ast.Expr)
        if simple and DONE.search(f"{ast.unparse(node)}\n"):
            return f"line {line_of(node)}"
    return ""


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) is str

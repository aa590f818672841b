"""The source expressions of a call's operands: `k` of `q @ k`, `mask` of masked_fill."""

import ast
import linecache
from types import CodeType, TracebackType

LONGEST = 32  # characters of an expression that still reads as a name
SPACES = {"torch", "F", "functional", "nn", "np", "einops"}


def operand_names(error: BaseException, code: CodeType | None, op: str) -> list[str | list[str]]:
    """By argument of the call that raised, a list for a list; empty where it cannot be told."""
    spot = _position(error.__traceback__, code) if code is not None else None
    if spot is None or code is None:
        return []
    lines = linecache.getlines(code.co_filename)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return []
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.AugAssign)) and _place(node) == spot:
            return [_text(a) for a in _arguments(node, op)]
    return []


Spot = tuple[int | None, int | None, int | None, int | None]


def _position(trace: TracebackType | None, code: CodeType) -> Spot | None:
    """Line, last line, column and last column of the instruction that raised in this code."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code is code:
            found = trace.tb_lasti
        trace = trace.tb_next
    if found is None:
        return None
    return next((p for i, p in enumerate(code.co_positions()) if i == found // 2), None)


def _place(node: ast.expr | ast.AugAssign) -> Spot:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _arguments(node: ast.AST, op: str) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [right, left] if op.startswith("r") else [left, right]
        case ast.AugAssign(target=target, value=value):
            return [target, value]
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
            if isinstance(owner, ast.Name) and owner.id in SPACES:
                return args
            return [owner, *args] if name == op else args[:1]
        case ast.Call(func=func, args=args):
            return args if isinstance(func, ast.Name) and func.id == op else args[:1]
    return []


def _text(node: ast.expr) -> str | list[str]:
    """An expression that may get a method behind it; "" for a long one."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [str(_text(e)) for e in node.elts]
    text = ast.unparse(node)
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.BoolOp)):
        text = f"({text})"
    return text if len(text) <= LONGEST else ""

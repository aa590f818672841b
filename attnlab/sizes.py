"""Sizes: symbols evaluated, in an axis such as "3*D" or in a constructor; bytes in words."""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

from attnlab.files import PARSING

Sizes = dict[str, int]
OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}


class UnknownSize(Exception):
    """An axis or constructor value names a symbol that has no size."""


def measure(text: str, sizes: Mapping[str, int]) -> int:
    """The value of "4", "D" or "3*D"; raises `UnknownSize` for an unknown symbol."""
    if text in sizes:
        return sizes[text]
    try:
        return _value(_parsed(text), sizes)
    except (SyntaxError, ZeroDivisionError, ValueError) as error:
        raise UnknownSize(f"{text!r} is not a size: {error}") from None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    with PARSING:
        return ast.parse(text.strip(), mode="eval").body


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:  # True is an int to Python
            return number
        case ast.Name(id=symbol) if symbol in sizes:
            return sizes[symbol]
        case ast.Name(id=symbol):
            raise UnknownSize(f"the size of {symbol} is not known")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
    raise ValueError("use symbols, numbers and * // + -")


def constructor_arguments(
    init: Mapping[str, str | int | float | bool | None], sizes: Mapping[str, int]
) -> dict[str, object]:
    """Constructor keywords with every symbol replaced by its size; other strings stay."""
    made: dict[str, object] = {}
    for name, value in init.items():
        made[name] = value
        if isinstance(value, str):
            try:
                made[name] = measure(value, sizes)
            except UnknownSize:
                made[name] = fill_symbols(value, sizes)
    return made


def with_head_dim(sizes: Mapping[str, int]) -> Sizes:
    """The sizes with hd = D / H, where heads divide a width; else as they are."""
    full = dict(sizes)
    if full.get("H") and "D" in full and full["D"] % full["H"] == 0:
        full["hd"] = full["D"] // full["H"]
    return full


def fill_symbols(text: str, sizes: Mapping[str, int]) -> str:
    """`Config(n_embd=D)` or `(3, D)` with sizes for symbols; any other text as it is."""
    node = parse_object(text)
    if node is None:
        return text
    if isinstance(node, ast.Tuple):
        node.elts = [_filled(part, sizes) for part in node.elts]
    else:
        for keyword in node.keywords:
            keyword.value = _filled(keyword.value, sizes)
    return ast.unparse(node)


def _filled(node: ast.expr, sizes: Mapping[str, int]) -> ast.expr:
    known = isinstance(node, ast.Name) and node.id in sizes
    return ast.Constant(sizes[node.id]) if known and isinstance(node, ast.Name) else node


def parse_object(text: str) -> ast.Call | ast.Tuple | None:
    """The call `Config(n_embd=8)` or the tuple `(3, 12)`; None for any other text."""
    if not text.endswith(")"):
        return None
    try:
        with PARSING:
            node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.Tuple):
        return node
    plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args
    return node if plain and isinstance(node, ast.Call) else None


def format_bytes(count: int | None) -> str:
    """`512 B`, `4.1 kB`, `12.6 MB`: thousands, as tensors are counted."""
    return "" if count is None else f"{scaled(count, 'kMGTPEZYRQ', '.3g')}B"


def scaled(count: int, prefixes: str, digits: str) -> str:
    """`12.6 M` of 12,600,000, or `512 `: the number in the largest unit of which there is one."""
    value, unit = float(count), ""
    for prefix in prefixes:
        if float(f"{value:{digits}}") < 1000:
            break
        value, unit = value / 1000, prefix
    return f"{value:{digits}} {unit}" if unit else f"{count} "

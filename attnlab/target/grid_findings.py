"""What the text of a file says of places in a flattened picture: row and column are counted with
the length of a row, not with the number of rows, and grids run row by row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from attnlab.target.source_walk import (
    Function,
    Told,
    argument,
    arguments,
    called,
    line_of,
    pairs_of,
    scopes,
    set_once,
)


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])({'|'.join(words)})\d?(?![a-z])", re.IGNORECASE)


HEIGHTS = _words("h", "hh", "height", "rows?", "nrows?", "ny", "gh", "nh")
ROWS = _words("rows?", "r", "ys?", "yy", "py", "iy", "h", "hh", "height", "top", "vertical")
COLUMNS = _words("cols?", "columns?", "c", "xs?", "xx", "px", "ix", "w", "ww", "width", "left")
OTHERS = {
    "height": "width",
    "rows": "cols",
    "row": "col",
    "ny": "nx",
    "gh": "gw",
    "nh": "nw",
    "h": "w",
    "H": "W",
}
WHOLE = {"float", "long", "int", "to", "floor"}


def places_by_rows(tree: ast.Module) -> Iterator[Told]:
    """`row, col = n // height, n % height`, and `row * height + col`: right for squares alone."""
    for _, nodes in scopes(tree):
        sizes = {ast.unparse(n) for n in nodes if isinstance(n, ast.Name | ast.Attribute)}
        sizes |= {ast.unparse(n) for n in nodes if isinstance(n, ast.arg)}
        known = {name: ast.unparse(value) for name, value in set_once(nodes).items()}
        known |= {ast.unparse(n): "equal" for n in nodes if isinstance(n, ast.Compare)}
        rows: dict[tuple[str, str], tuple[str, int]] = {}  # by the number and what it is divided by
        columns: dict[tuple[str, str], str] = {}
        for node in nodes:
            for name, value in _named(node):
                if both := _divided(value, ast.FloorDiv, "floor_divide", "div"):
                    rows.setdefault(both, (name, line_of(value)))
                elif both := _divided(value, ast.Mod, "remainder", "fmod"):
                    columns.setdefault(both, name)
            if found := _counted(node):
                row, size, column = found
                if _is_row(row) and _is_column(column) and (width := _width(size, sizes, known)):
                    yield Told(
                        line_of(node),
                        "grid-by-rows",
                        f"{ast.unparse(node)[:70]} counts {size} places to a row, and a row has as "
                        f"many as there are columns: {row} * {width} + {column}",
                    )
        for both, (row, line) in rows.items():
            (number, size), column = both, columns.get(both, "")
            if _is_row(row) and _is_column(column) and (width := _width(size, sizes, known)):
                yield Told(
                    line,
                    "grid-by-rows",
                    f"{row} is {number} // {size} and {column} is {number} % {size}, and a row has "
                    f"as many places as there are columns: where {size} and {width} differ, both "
                    f"are wrong. Use {number} // {width} and {number} % {width}",
                )


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Values by what they are assigned to, or given to as in `row_table(n // width)`."""
    for target, value in pairs_of(node):
        names = getattr(target, "elts", ())
        if called(value) == "divmod" and len(names) == 2 and isinstance(value, ast.Call):
            for name, sign in zip(names, (ast.FloorDiv(), ast.Mod()), strict=True):
                both = ast.BinOp(value.args[0], sign, value.args[1])
                yield ast.unparse(name), ast.copy_location(both, value)
        else:
            yield ast.unparse(target), value
    if isinstance(node, ast.Call) and len(node.args) == 1 and called(node) not in WHOLE:
        yield called(node), node.args[0]
    elif isinstance(node, ast.Subscript):
        yield ast.unparse(node.value).rpartition(".")[2], node.slice


def _divided(value: ast.expr, sign: type[ast.operator], *calls: str) -> tuple[str, str] | None:
    """What is divided, and by what."""
    while isinstance(value, ast.Call) and called(value) in WHOLE:
        first = argument(value, 0)
        if first is None:
            return None
        value = first
    if isinstance(value, ast.BinOp) and isinstance(value.op, sign):
        return ast.unparse(value.left), ast.unparse(value.right)
    number, size = argument(value, 0), argument(value, 1, "other")
    if called(value) not in calls or number is None or size is None:
        return None
    if called(value) == "div" and "rounding_mode" not in ast.unparse(value):
        return None
    return ast.unparse(number), ast.unparse(size)


def _counted(node: ast.AST) -> tuple[str, str, str] | None:
    """Row, length and column of `row * length + column`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        product = node.left
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
            sides = (product.left, product.right, node.right)
            row, size, column = (ast.unparse(s) for s in sides)
            return row, size, column
    return None


def _is_row(name: str) -> bool:
    return bool(ROWS.search(name)) and not COLUMNS.search(name)


def _is_column(name: str) -> bool:
    return bool(COLUMNS.search(name)) and not ROWS.search(name)


def _width(size: str, sizes: set[str], known: dict[str, str]) -> str:
    """The width that stands beside a height in the same function; "" for no height."""
    if not re.fullmatch(r"[\w.]+", size) or not HEIGHTS.search(size):
        return ""
    for high, wide in OTHERS.items():
        width = re.sub(rf"(?<![a-zA-Z]){high}(?![a-zA-Z])", wide, size)
        if width != size and width in sizes:
            same = known.get(width) in (size, known.get(size, "")) or f"{size} == {width}" in known
            return "" if same else width
    return ""


WIDE = _words("w", "ww", "width", "cols?", "columns?", "nx", "gw", "nw")
FLAT = re.compile(r"flatten\(|reshape\(-1|view\(-1|ravel\(|reshape\(\[?\w+ \* \w+|\(h w\)")
TURNED = re.compile(r"transpose\(|permute\(|\.m?T\b|\.t\(\)|swapaxes|movedim|rearrange")
PLACES = re.compile(
    r"pos|rope|rotary|axial|freq|angle|coord|sincos|sin_cos|embed|bias", re.IGNORECASE
)
# A picture whose tokens lie row by row.
BY_ROWS = re.compile(r"\.flatten\((start_dim=)?[2-3]\)\.(transpose|permute|m?T\b)|\(h w\) [cd]\b")


def grids_by_columns(tree: ast.Module) -> Iterator[Told]:
    """`meshgrid(arange(width), arange(height), indexing="ij")`, flattened for tokens that lie row
    by row."""
    if not BY_ROWS.search(text := ast.unparse(tree)) or re.search(r"\(w h\)", text):
        return
    for scope, nodes in scopes(tree):
        text = ast.unparse(scope)
        if not isinstance(scope, Function) or not PLACES.search(text):
            continue
        known = set_once(nodes)
        for node in nodes:
            if called(node) != "meshgrid" or not FLAT.search(text) or TURNED.search(text):
                continue
            given = arguments(node)
            given = list(getattr(given[0], "elts", given)) if given else []
            sizes = [_counted_to(g, known) for g in given]
            if len(sizes) != 2 or "" in sizes:
                continue
            order = ast.unparse(node).rpartition("indexing=")[2].strip("')")
            plain = not re.match("np|numpy|jnp", ast.unparse(node))  # torch takes rows first
            first, second = sizes if order == "ij" or (order != "xy" and plain) else sizes[::-1]
            high = HEIGHTS.search(second) and not WIDE.search(second)
            if WIDE.search(first) and not HEIGHTS.search(first) and high:
                yield Told(
                    line_of(node),
                    "grid-by-rows",
                    f"{ast.unparse(node)[:80]} has {first} as its first axis, so flattened it runs "
                    f"column by column, and tokens of a picture lie row by row: each gets the "
                    f"place of another. Use meshgrid(arange({second}), arange({first}), "
                    "indexing='ij'), which gives y before x",
                )


def _counted_to(node: ast.expr, known: Mapping[str, ast.expr]) -> str:
    """The size up to which an arange or linspace counts; "" for none."""
    if isinstance(node, ast.Name):
        node = known.get(node.id, node)
    while called(node) in WHOLE and arguments(node):
        node = arguments(node)[0]
    given = arguments(node)
    if called(node) in ("arange", "range") and given:
        return ast.unparse(given[1 if len(given) > 1 else 0])
    steps = argument(node, 2, "steps", "num")
    return ast.unparse(steps) if called(node) == "linspace" and steps is not None else ""


RULES = (places_by_rows, grids_by_columns)

"""Views whose text deals the axes of a tensor out in another order than that of memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from attnlab.target.source_walk import Function, Told, arguments, called, line_of, scopes

VIEWS = {"view", "reshape"}
MOVES = re.compile(r"transpose|permute|swapaxes|movedim|einsum|rearrange|\.T\b|\.mT\b|contiguous")
SKEWS = re.compile(r"pad|skew|shift", re.IGNORECASE)
POOLS = re.compile(r"pool|mean|sum|max|flatten|unfold|squeeze|\[|stack|cat\(|gather|roll")


def turned_views(tree: ast.Module) -> Iterator[Told]:
    """`b, c, h, w = f.shape` and then `f.view(b, w, c * h)`: a view moves no axis."""
    for scope, nodes in scopes(tree):
        if SKEWS.search(getattr(scope, "name", "")) or "batch_first" in ast.unparse(scope):
            continue  # a skew is meant; and of two layouts only one is that of the names
        shapes: dict[str, list[str]] = {}  # the names of the axes, by variable
        made: dict[str, str] = {}  # the variable that one has the leading axes of
        for node in nodes:
            for call in _views_in(node):
                if SKEWS.search(ast.unparse(call.func)):
                    continue  # one row more or less makes it a skew, and is meant
                owner = call.func.value if isinstance(call.func, ast.Attribute) else call
                axes = _axes_of(owner, shapes, made)
                if axes and (moved := _moved(axes, call)):
                    first, later = moved
                    yield Told(
                        call.lineno,
                        "reshape-moves-axes",
                        f"{ast.unparse(call)[:70]} puts {first} before {later}, and in memory "
                        f"({', '.join(axes)}) {later} comes first: {called(call)} moves no axis, "
                        "it deals the numbers out anew. Permute or transpose first",
                    )
            if isinstance(node, ast.Assign):
                _note(node, shapes, made)


def _note(node: ast.Assign, shapes: dict[str, list[str]], made: dict[str, str]) -> None:
    """What an assignment says of axes."""
    target, value = node.targets[0], node.value
    unpacked = re.fullmatch(r"(\w+)\.(shape|size\(\))", ast.unparse(value))
    if unpacked and isinstance(target, ast.Tuple):
        names = [ast.unparse(e) for e in target.elts]
        if all(name.isidentifier() for name in names) and len(set(names) - {"_"}) > 1:
            shapes[unpacked[1]] = names
        return
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    for name in names:
        shapes.pop(name, None)
        made.pop(name, None)
    kept = _keeps_axes(value, shapes)
    if kept:
        made |= dict.fromkeys(names, kept)


def _keeps_axes(value: ast.expr, shapes: dict[str, list[str]]) -> str:
    """The variable whose axes but the last a value still has: that of a layer, or of chunks of
    one."""
    text = ast.unparse(value)
    if MOVES.search(text) or POOLS.search(text) or "view(" in text or "reshape(" in text:
        return ""
    layer = re.match(
        r"self\.\w*(proj|linear|qkv|query|key|value|to_\w+|[wW]?_?[qkvQKV]|fc)\w*\((\w+)\)", text
    )
    return layer[2] if layer and layer[2] in shapes else ""


def _views_in(node: ast.AST) -> Iterator[ast.Call]:
    simple = isinstance(node, ast.Assign | ast.Return | ast.Expr | ast.AugAssign)
    for inner in ast.walk(node) if simple else ():
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr in VIEWS
        ):
            yield inner


def _axes_of(
    owner: ast.expr, shapes: dict[str, list[str]], made: dict[str, str]
) -> list[str] | None:
    """The names of the axes of what is viewed, in the order of memory."""
    if isinstance(owner, ast.Name):
        return shapes.get(owner.id) or shapes.get(made.get(owner.id, ""))
    return shapes.get(_keeps_axes(owner, shapes))


def _moved(axes: list[str], call: ast.Call) -> tuple[str, str] | None:
    """Two axes that a view names in the other order."""
    asked = [ast.unparse(a) for a in call.args]
    if len(asked) == 1 and isinstance(call.args[0], ast.Tuple | ast.List):
        asked = [ast.unparse(a) for a in call.args[0].elts]
    last = axes[-1]
    at = asked.index(last) if last in asked else len(asked)
    alone = len(axes) == 3 and axes[1] not in asked and "1" not in asked
    if alone and asked[:at] == axes[:1] and asked[at + 1 :]:  # (B, N, C) as (B, C, H, W)
        return last, axes[1]
    parts = {ast.unparse(n.right) for a in asked for n in _quotients(a, last)}
    places: list[tuple[int, str]] = []
    for text in asked:
        for word in re.findall(r"[\w.]+", text):
            if word in parts and word == text:
                places.append((len(axes) - 1, word))
            elif word in axes and "//" not in text:
                places.append((axes.index(word), word))
    for (place, name), (following, other) in pairwise(places):
        if following < place:
            return name, other
    return None


def _quotients(text: str, last: str) -> Iterator[ast.BinOp]:
    for node in ast.walk(ast.parse(text, mode="eval")) if "//" in text else ():
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv)
            and ast.unparse(node.left) == last
        ):
            yield node


def turned_tables(tree: ast.Module) -> Iterator[Told]:
    """A table of positions, (1, N, C), that becomes an image by `reshape(1, C, h, w)`."""
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        widths = {
            ast.unparse(n.targets[0]): size[1].removeprefix("self.")
            for n in ast.walk(kind)
            if isinstance(n, ast.Assign)
            and (size := re.search(r"Parameter\(torch\.\w+\(1, [^,]+, ([\w.]+)\)", _plain(n.value)))
        }
        for node in ast.walk(kind) if widths else ():
            if not isinstance(node, Function):
                continue
            tables = dict(widths)
            for call in sorted(
                ast.walk(node), key=lambda n: (line_of(n), isinstance(n, ast.Assign))
            ):
                if isinstance(call, ast.Assign):  # after the calls of its line
                    _note_tables(call, tables)
                if called(call) not in VIEWS or not isinstance(call, ast.Call):
                    continue
                asked = [ast.unparse(a) for a in arguments(call)[1:]]
                width = "" if MOVES.search(ast.unparse(call.func)) else _table(call.func, tables)
                at_front = asked[1:2] == ["-1"] or (asked[1:2] and asked[1].endswith(width))
                if width and len(asked) == 4 and at_front and asked[0] == "1":
                    yield Told(
                        call.lineno,
                        "reshape-moves-axes",
                        f"{ast.unparse(call)[:70]} makes the rows of a table of (1, positions, "
                        f"{width}) channels of an image: each channel gets numbers of many. Use "
                        f"reshape(1, h, w, {width}).permute(0, 3, 1, 2)",
                    )


def _plain(node: ast.AST) -> str:
    """The text of a value without what it is multiplied by."""
    return ast.unparse(node).replace("nn.Parameter(", "Parameter(")


def _note_tables(node: ast.Assign, tables: dict[str, str]) -> None:
    """The variables that hold rows of a table."""
    targets = getattr(node.targets[0], "elts", node.targets)
    values = getattr(node.value, "elts", (node.value,))
    for target, value in zip(targets, values, strict=False):
        held = "" if MOVES.search(ast.unparse(value)) else _table(value, tables)
        changed = re.search(
            r"\b(view|reshape|interpolate|mean|sum|stack|cat)\(", ast.unparse(value)
        )
        if held and not changed:
            tables[ast.unparse(target)] = held
        elif isinstance(target, ast.Name):
            tables.pop(target.id, None)


def _table(node: ast.AST, tables: dict[str, str]) -> str:
    """The width of the table that a value is rows of; "" for no table."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        if ast.unparse(node) in tables:
            break
        index = getattr(node, "slice", None)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(i, ast.Constant) for i in parts):
            return ""
        node = node.func if isinstance(node, ast.Call) else node.value
    return tables.get(ast.unparse(node), "")


RULES = (turned_views, turned_tables)

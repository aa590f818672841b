"""What the text of a block shows: a sublayer among others that is not added, and numbers that are
made small floats before they are compared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Function, Told, base, called, scopes

PASSING = re.compile(
    r"norm|pool|down|up|patch|embed|proj|drop|reduc|expan|stem|head|act|out|pos|ln"
)
STAMPS = re.compile(r"stamp|unix|epoch_?(time|sec|ms)|time_?ms|_ns$", re.IGNORECASE)
FLOATS = re.compile(r"(?P<name>[\w.]+)\.(float\(\)|to\(torch\.float(32)?\)|half\(\)|bfloat16\(\))")


def missing_sums(tree: ast.Module) -> Iterator[Told]:
    """`x = x + f(x); x = g(x); x = x + h(x)` in a block of residual sublayers."""
    kinds = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    for kind in kinds.values():
        parts = _parts(kind)
        for function in (n for n in kind.body if isinstance(n, Function)):
            for block in _blocks(function):
                yield from _missing_in(block, parts, kinds)


def _parts(kind: ast.ClassDef) -> dict[str, str]:
    """The class of each attribute that the constructor makes."""
    return {
        target.attr: called(n.value)
        for n in ast.walk(kind)
        if isinstance(n, ast.Assign) and isinstance(target := n.targets[0], ast.Attribute)
    }


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            held = getattr(node, name, None)
            if isinstance(held, list) and len(held) > 2:
                yield held


def _missing_in(
    block: list[ast.stmt], parts: dict[str, str], kinds: dict[str, ast.ClassDef]
) -> Iterator[Told]:
    kept = {  # `residual = x`: what comes later is added to that
        ast.unparse(s.value)
        for s in block
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Name)
    }
    sums = [(i, name) for i, statement in enumerate(block) if (name := _sums_to(statement))]
    for at, statement in enumerate(block):
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign) or not isinstance(value, ast.Call):
            continue
        name = ast.unparse(statement.targets[0])
        part = re.fullmatch(r"self\.(\w+)", ast.unparse(value.func))
        first = ast.unparse(value.args[0]) if value.args else ""
        around = [i for i, other in sums if other == name and name not in kept]
        if part is None or first != name or not around or not min(around) < at < max(around):
            continue
        kind = kinds.get(parts.get(part[1], ""))
        if kind is None or PASSING.search(part[1].lower()) or _adds_itself(kind):
            continue
        yield Told(
            statement.lineno,
            "residual-missing",
            f"{ast.unparse(statement)} is not added to {name}, as the sublayers before and after "
            f"it are, and {kind.name} adds nothing itself: {name} = {name} + "
            f"{ast.unparse(value)}",
        )


def _sums_to(statement: ast.stmt) -> str:
    """The variable that a statement adds the output of a part to; "" for others."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        target, added = ast.unparse(statement.target), ast.unparse(statement.value)
        return target if "self." in added else ""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        name = ast.unparse(statement.targets[0])
        sides = [ast.unparse(statement.value.left), ast.unparse(statement.value.right)]
        calls = any("self." in side and "(" in side for side in sides if side != name)
        is_sum = isinstance(statement.value.op, ast.Add) and name in sides
        return name if is_sum and calls else ""
    return ""


def _adds_itself(kind: ast.ClassDef) -> bool:
    """Whether some method adds to what it is given, or changes its shape on purpose."""
    for function in (n for n in kind.body if isinstance(n, Function) and n.name != "__init__"):
        given = {a.arg for a in function.args.args[1:]}
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign) and ast.unparse(node.target) in given:
                return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                sides = {ast.unparse(node.left), ast.unparse(node.right)}
                if sides & (given | {"residual", "shortcut", "skip", "identity", "res"}):
                    return True
    return False


def narrow_stamps(tree: ast.Module) -> Iterator[Told]:
    """`t = stamps.float(); t[1:] - t[:-1]`: seconds since 1970 need more digits."""
    for _, nodes in scopes(tree):
        for node in (n for n in nodes if isinstance(n, ast.Assign)):
            found = FLOATS.fullmatch(ast.unparse(node.value))
            if found is None or not STAMPS.search(found["name"]):
                continue
            name = ast.unparse(node.targets[0])
            for other in nodes:
                apart = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub)
                sides = (other.left, other.right) if isinstance(other, ast.BinOp) else ()
                if apart and all(ast.unparse(s).partition("[")[0] == name for s in sides):
                    yield Told(
                        node.lineno,
                        "dtype-narrowed",
                        f"{ast.unparse(node)} rounds before it subtracts: seconds since 1970 are "
                        "1.7e9, and float32 has steps of 128 there, so that small gaps are lost. "
                        "Subtract whole numbers first, and then make them floats",
                    )
                    break


SCALES = re.compile(r"(^|_)(scale|gamma|sc|gain)(_|\d|$)")
SHIFTS = re.compile(r"(^|_)(shift|beta|sh|bias)(_|\d|$)")
ZEROED = re.compile(  # a layer of scales and shifts that begins at zero
    r"(zeros_|constant_)\([^\n]*(ada|mod|cond|film|scale|emb|style)\w*(\[-?\d\]|\.linear|\.proj)*"
    r"\.weight(\.data)?(, 0(\.0)?)?\)|(ada|mod|film|cond)\w*(\[-?\d\])?\.weight\.data\.zero_",
    re.IGNORECASE,
)


def scales_from_zero(tree: ast.Module) -> Iterator[Told]:
    """`norm(x) * scale + shift` where a layer that begins at zero makes the scale."""
    text = ast.unparse(tree)
    if not ZEROED.search(text) or re.search(r"ones_\(|fill_\(1|bias[^\n]*= 1\b", text):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        product, shift = node.left, base(node.right)
        if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            continue
        sides = (product.left, product.right)
        scale = next((base(s) for s in sides if SCALES.search(base(s))), "")
        if scale and SHIFTS.search(shift) and not scale.startswith("self."):
            if re.search(rf"\b{scale} = (1(\.0)? \+|{scale} \+ 1)|\b{scale} \+= 1", text):
                continue
            yield Told(
                node.lineno,
                "scale-from-zero",
                f"{ast.unparse(node)[:70]}: the layer that makes {scale} begins at zero, so at the "
                f"start all of what was normalised is multiplied by 0. Multiply by (1 + {scale})",
            )


RULES = (missing_sums, narrow_stamps, scales_from_zero)

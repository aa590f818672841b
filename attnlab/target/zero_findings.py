"""What the text of a file says of weights that begin at zero: of two that are multiplied, neither
ever learns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, line_of, words

ZERO = re.compile(r"Parameter\((torch\.)?zeros\(")
PRODUCTS = {"matmul", "mm", "bmm", "einsum", "linear"}
TURNED = {"t", "transpose", "permute", "to", "view", "reshape", "mT", "T", "contiguous"}
PASSED = re.compile(r"drop", re.IGNORECASE)


def zero_products(tree: ast.Module) -> Iterator[Told]:
    """`x @ A.T @ B.T` where both A and B begin at zero: neither ever gets a gradient."""
    begin = {"zeros", "zeros_", "zero_"} & words(tree)
    for kind in (n for n in ast.walk(tree) if begin and isinstance(n, ast.ClassDef)):
        zero = dict(_zeros(kind))
        for node in ast.walk(kind) if len(zero) > 1 else ():
            used = list(dict.fromkeys(n for n in _factors(node, zero) if n in zero))
            if len(used) > 1:
                yield Told(
                    zero[used[0]],
                    "initialization",
                    f"{used[0]} and {used[1]} begin at zero, and line {line_of(node)} multiplies "
                    "one by the other: the gradient of each is a multiple of the other, so "
                    "neither ever moves. One of them needs random values",
                )
                break


def _zeros(kind: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Parameters, and linear layers without a bias, that begin at zero; and their lines."""
    made = {ast.unparse(n.targets[0]): n for n in ast.walk(kind) if isinstance(n, ast.Assign)}
    filled: dict[str, list[ast.Call]] = {}
    for node in ast.walk(kind):
        if isinstance(node, ast.Call) and re.search(r"[a-z]_$", called(node)):
            owner = ast.unparse(getattr(node.func, "value", node.func)).removesuffix(".data")
            names = [owner, *(ast.unparse(a).removesuffix(".data") for a in node.args[:1])]
            for name in names:
                filled.setdefault(name.removesuffix(".weight"), []).append(node)
    for name, assigned in made.items():
        value = ast.unparse(assigned.value)
        calls = filled.get(name, [])
        is_layer = called(assigned.value) == "Linear" and "bias=False" in value
        if not name.startswith("self.") or not (is_layer or "Parameter(" in value):
            continue
        if calls and all(called(c) in ("zeros_", "zero_") for c in calls):
            yield name, calls[0].lineno
        elif not calls and ZERO.search(value):
            yield name, assigned.lineno


def _factors(node: ast.AST, zero: dict[str, int]) -> Iterator[str]:
    """The attributes that a product multiplies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult):
        yield from _factors(node.left, zero)
        yield from _factors(node.right, zero)
    elif isinstance(node, ast.Attribute):
        yield from _factors(node.value, zero) if node.attr in TURNED else (ast.unparse(node),)
    elif isinstance(node, ast.Subscript):
        yield from _factors(node.value, zero)
    elif isinstance(node, ast.Call):
        name, owner = ast.unparse(node.func), getattr(node.func, "value", node.func)
        given = node.args[:1] if name in zero or PASSED.search(name) else []
        if called(node) in PRODUCTS:
            given = node.args[1:] if called(node) == "einsum" else node.args[:2]
            given = [owner, *given] if "." in name and owner is not node.func else given
        elif called(node) in TURNED:
            given = [owner]
        yield from (name,) if name in zero else ()
        for value in given:
            yield from _factors(value, zero)


RULES = (zero_products,)

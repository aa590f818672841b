"""What the text of a file says of temperatures: scores are divided by them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from attnlab.target.source_walk import Told, arguments, called, line_of, scopes, set_once, words

TEMPERATURE = re.compile(r"(\w+_)?(temperature|temp|tau)", re.IGNORECASE)
INVERSE = re.compile(r"inv|recip|scale", re.IGNORECASE)
PRODUCTS = {"matmul", "mm", "bmm", "einsum", "inner", "cosine_similarity", "dot"}
SOFTENED = {"softmax", "log_softmax", "cross_entropy", "logsumexp"}
SAME = {"view", "reshape", "flatten", "detach", "contiguous", "clone", "squeeze", "unsqueeze"}
SAME |= {"transpose", "permute", "masked_fill", "to", "float", "fill_diagonal_", "t"}


def temperatures_as_factors(tree: ast.Module) -> Iterator[Told]:
    """`z @ z.t() * temperature` with 0.1: the softmax of it is nearly flat."""
    if not any(map(TEMPERATURE.fullmatch, words(tree))) and "kl_div" not in words(tree):
        return
    text = ast.unparse(tree)
    for _, nodes in scopes(tree):
        known = set_once(nodes)
        distils = any(called(n) == "kl_div" for n in nodes)
        softened = {
            id(arguments(n)[0]): called(n) for n in nodes if called(n) in SOFTENED and arguments(n)
        }
        for node in nodes:
            name, other = _multiplied(node, distils)
            if other is None:
                continue
            values = set(_numbers(name, text))
            low, by = bool(values) and max(values) < 1, softened.get(id(node), "")
            if (low and (by or _compares(other, known))) or (distils and "softmax" in by):
                shown = f", here {min(values):g}" if len(values) == 1 else ""
                wrong = "nearly flat" if low else "sharper where it is to be softer"
                yield Told(
                    line_of(node),
                    "temperature-multiplied",
                    f"`{ast.unparse(node)[:60]}` multiplies scores with the temperature{shown}: "
                    f"their softmax is {wrong}. Divide by it",
                )


def _multiplied(node: ast.AST, distils: bool) -> tuple[str, ast.expr | None]:
    """Of a product with a temperature: its name, and the other factor."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
        sides = [node.target, node.value]
    for side, other in (sides, sides[::-1]) if len(sides) == 2 else ():
        name = str(getattr(side, "attr", getattr(side, "id", "")))
        if (TEMPERATURE.fullmatch(name) or (distils and name == "T")) and not INVERSE.search(name):
            return name, other
    return "", None


def _compares(node: ast.expr, known: Mapping[str, ast.expr], depth: int = 4) -> bool:
    """Whether it is a product of matrices, or cosines."""
    if isinstance(node, ast.Name) and node.id in known and depth:
        return _compares(known[node.id], known, depth - 1)
    if called(node) in SAME and arguments(node):
        return _compares(arguments(node)[0], known, depth)
    matrices = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return matrices or called(node) in PRODUCTS


def _numbers(name: str, text: str) -> list[float]:
    """The numbers that a name is given anywhere; what is worked out, or learned, is endless."""
    given = re.findall(rf"\b{name}\b(?:: [\w. |]+)? ?=(?!=) ?([^,)\n]+)", text)
    given += re.findall(rf"'--{name}',[^\n]*default=([^,)\n]+)", text)
    own = (value for value in given if value.rpartition(".")[2] != name)
    return [float(v) if re.fullmatch(r"[\d.]+(e-?\d+)?", v) else float("inf") for v in own]


RULES = (temperatures_as_factors,)

"""What the text of a file sums or compares along the wrong axis: late interaction
whose best token is one of the query; and sums over keys that multiply where they are to divide."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Told,
    argument,
    arguments,
    base,
    called,
    line_of,
    scopes,
    set_once,
)

QUERY = re.compile(r"^(q|query|queries)(_|$)|query", re.IGNORECASE)
DOCUMENT = re.compile(r"^(d|doc\w*|p|passage\w*)(_|$)", re.IGNORECASE)
LATE = re.compile(r"max_?sim|late_?inter|colbert", re.IGNORECASE)
BEST = {"max", "amax"}


def turned_late_interactions(tree: ast.Module) -> Iterator[Told]:
    """The best query token for each token of the document, summed over the document."""
    if not LATE.search(ast.unparse(tree)):
        return
    for _, nodes in scopes(tree):
        axes: dict[str, list[str]] = {}  # of scores: query, document, or other
        for node in nodes:
            if isinstance(node, ast.Assign):
                name = ast.unparse(node.targets[0])
                made = _axes_of_scores(node.value) or axes.get(base(node.value), [])
                kept = called(node.value) in ("masked_fill", "einsum", "matmul", "bmm", "")
                axes[name] = made if kept and not isinstance(node.value, ast.Subscript) else []
            if called(node) not in BEST:
                continue
            held = arguments(node)[0] if arguments(node) else node
            known = _axes_of_scores(held) or axes.get(ast.unparse(held), [])
            if called(held) == "masked_fill":
                known = known or axes.get(base(held), [])
            axis = argument(node, 1, "dim", "axis")
            place = int(_text(axis)) if re.fullmatch(r"-?\d", _text(axis)) else 99
            over_query = -len(known) <= place < len(known) and known[place] == "query"
            later = (n for n in nodes if called(n) == "sum" and line_of(n) >= line_of(node))
            if over_query and any(later):
                yield Told(
                    line_of(node),
                    "late-interaction-turned",
                    f"{ast.unparse(node)[:60]} takes the best query token for each token of "
                    "the document, and the sum runs over the document: long documents win. "
                    f"Take the best document token, dim={known.index('document') - len(known)}, "
                    "and sum over the query",
                )


def _text(node: ast.AST | None) -> str:
    return ast.unparse(node) if node is not None else ""


def _axes_of_scores(value: ast.AST) -> list[str]:
    """Whose tokens each axis of a product of token vectors is, where both are known by name."""
    given = arguments(value)
    if called(value) == "einsum" and len(given) == 3 and isinstance(given[0], ast.Constant):
        sides = re.fullmatch(r"([\w.]+),([\w.]+)->([\w.]+)", str(given[0].value).replace(" ", ""))
        kinds = [_kind(base(g)) for g in given[1:]]
        if sides is None or set(kinds) != {"query", "document"} or "." in sides[0]:
            return []
        found = []
        for letter in sides[3]:
            inside = [at for at in (1, 2) if letter in sides[at]]
            token = len(inside) == 1 and sides[inside[0]].index(letter) == len(sides[inside[0]]) - 2
            found.append(kinds[inside[0] - 1] if token else "other")
        return found
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult):
        given = [value.left, value.right]
    elif called(value) not in ("matmul", "bmm"):
        return []
    kinds = [_kind(base(g)) for g in given[:2]]
    turned = re.search(r"transpose|permute|\.mT\b|\.T\b|\.t\(\)", _text(given[1]))
    return kinds if set(kinds) == {"query", "document"} and turned else []


def _kind(name: str) -> str:
    name = name.removesuffix(".mT").rpartition(".")[2]
    return "query" if QUERY.search(name) else "document" if DOCUMENT.search(name) else ""


NORMALISER = re.compile(
    r"d_?inv|inv_?d|den(om(inator)?)?|norm(ali[sz](er|ation))?|z(_inv)?", re.IGNORECASE
)
SMALL = 1e-3  # at most an eps
KEPT = {"unsqueeze", "view", "reshape", "expand", "to", "float", "type_as", "expand_as"}
KEPT |= {"transpose", "permute", "contiguous", "squeeze"}
TIMES = {"mul", "mul_", "multiply"}


def multiplied_normalisers(tree: ast.Module) -> Iterator[Told]:
    """`out * (q @ k.sum(1) + eps)`: what keeps a sum over keys from zero is there to divide."""
    for scope, nodes in scopes(tree):
        above = {child: n for n in nodes for child in ast.iter_child_nodes(n)}
        read = [n for n in ast.walk(scope) if isinstance(n, ast.Name)]
        found: list[tuple[ast.AST, str]] = []
        for name, value in set_once(nodes).items():
            if (with_eps := _contraction(value)) is None:
                continue
            if not with_eps and not NORMALISER.fullmatch(name):
                continue
            loads = [n for n in read if n.id == name and isinstance(n.ctx, ast.Load)]
            times = [f for n in loads if (f := _as_factor(n, above, read))]
            if times and len(times) == len(loads):
                found.append((times[0], f"{name} = {ast.unparse(value)}"))
        for node in nodes:
            inline = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
            if inline and _contraction(node) and (factor := _as_factor(node, above, read)):
                found.append((factor, ast.unparse(node)))
        for factor, text in found:
            yield Told(
                line_of(factor),
                "normaliser-multiplied",
                f"{ast.unparse(factor)[:60]} multiplies by a sum of weights over the keys, "
                f"{text[:80]}, and nothing divides by it: outputs grow with the square of the "
                "number of keys, where weights are to add up to 1. Divide by it",
            )


def _contraction(value: ast.AST) -> bool | None:
    """Whether what is summed over keys has an eps; None for what is no such sum."""
    small: ast.expr | None = None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        small, value = value.right, value.left
    elif called(value) in ("clamp", "clamp_min", "clip", "add"):
        small, value = argument(value, 1, "min"), next(iter(arguments(value)), value)
    if small is not None and not _is_small(small):
        return None
    while called(value) in KEPT and arguments(value):
        value = arguments(value)[0]
    text = ast.unparse(value)
    if re.search(r"\*\* ?2|square|pow\(|abs\(|norm\(|std|var\(|softmax|log", text):
        return None
    sides = [a for a in arguments(value) if not isinstance(a, ast.Constant)]
    product = sides[0] if called(value) == "sum" and sides else value
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult | ast.MatMult):
        sides = [product.left, product.right]
    elif called(value) not in ("einsum", "matmul", "bmm"):
        return None
    summed = [s for s in sides if re.search(r"sum(\(|\b|_)|_sum|\bz\b", ast.unparse(s))]
    return small is not None if len(sides) == 2 and len(summed) == 1 else None


def _is_small(node: ast.expr) -> bool:
    value = getattr(node, "value", None)
    if isinstance(node, ast.Constant) and isinstance(value, float):
        return 0 < value <= SMALL
    return bool(re.search(r"(^|[._])eps(ilon)?$|tiny$", ast.unparse(node), re.IGNORECASE))


def _as_factor(
    node: ast.AST, above: dict[ast.AST, ast.AST], read: list[ast.Name]
) -> ast.AST | None:
    """The product that a value goes into; None where it does anything else, or comes to divide."""
    factor: ast.AST | None = None
    up = above.get(node)
    while up is not None and not isinstance(up, ast.stmt):
        name = called(up) or getattr(up, "attr", "")
        sign = type(getattr(up, "op", None))
        if sign is ast.Mult or name in TIMES or (name == "einsum" and len(arguments(up)) > 2):
            sides = [ast.unparse(getattr(up, side, up)) for side in ("left", "right")]
            if any(re.fullmatch(r"[\d.]+|.*scale.*", side) for side in sides):
                return None
            factor = factor or up
        elif (
            (factor is None and not isinstance(up, ast.Subscript) and name not in {*KEPT, *TIMES})
            or (sign is ast.Div and getattr(up, "left", up) is not node)
            or sign is ast.Pow
            or re.search(r"reciprocal|sqrt|log|div|inv|norm", name)
        ):
            return None
        node, up = up, above.get(up)
    if isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Mult) and factor is None:
        return up
    names = {ast.unparse(t) for t in getattr(up, "targets", ())}
    divides = (getattr(above.get(n), "right", None) is n for n in read if n.id in names)
    return None if any(divides) else factor


RULES = (turned_late_interactions, multiplied_normalisers)

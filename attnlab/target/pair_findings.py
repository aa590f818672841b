"""What the text of a file says of pairs: which of all points are taken as near, and whether a loss
that has two directions has both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Function,
    Told,
    argument,
    arguments,
    called,
    line_of,
    scopes,
    words,
)

DISTANCES = {"cdist", "pairwise_distance", "pdist"}
SUMMED = {"sum", "norm", "vector_norm"}
PRODUCTS = {"matmul", "bmm", "mm", "einsum", "inner", "baddbmm"}
KEPT_SIGNS = {"sqrt", "clamp", "clamp_min", "relu", "float", "squeeze", "masked_fill", "unsqueeze"}
KEPT_SIGNS |= {"view", "reshape", "expand", "repeat", "permute", "transpose", "t", "detach", "abs"}
KEPT_SIGNS |= {"contiguous", "to", "clamp_", "clamp_min_", "double", "expand_as", "maximum"}
MEANT_FAR = re.compile(
    r"far|hard|neg|worst|outl|anomal|novel|hausdorff|fps|error|mining", re.IGNORECASE
)
MEANT_NEAR = re.compile(r"near|neigh|knn|closest|assign|code|quant|centroid", re.IGNORECASE)
LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"}
ONE_NORM = 0.5  # the sign of |a|**2, which is a part of a distance and none by itself


def far_neighbours(tree: ast.Module) -> Iterator[Told]:
    """`cdist(a, b).topk(k)` takes the largest distances: the points that are farthest off."""
    if not {"topk", "argsort", "argmax", "sort"} & words(tree):
        return
    own = {n.name: n for n in ast.walk(tree) if isinstance(n, Function) and "dist" in n.name}
    for scope, nodes in scopes(tree):
        if MEANT_FAR.search(getattr(scope, "name", "")):
            continue
        signs: dict[str, float] = {}  # 1 where a variable holds distances, -1 for negated ones
        for node in nodes:
            for name in set_by(node):
                signs[name] = _sign(_value(node), signs, own)
        for statement in nodes:
            if not isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign | ast.Expr):
                continue
            text = f"{getattr(scope, 'name', '')} {ast.unparse(statement)}"
            for node in ast.walk(statement):
                instead = _takes_largest(node, text)
                if instead and _sign(arguments(node)[0], signs, own) == 1:
                    yield Told(
                        line_of(node),
                        "far-neighbours",
                        f"`{ast.unparse(node)[:60]}` takes the largest distances, those of the "
                        f"points that are farthest off. The nearest are {instead}",
                    )


def _takes_largest(node: ast.AST, text: str) -> str:
    """What would take the smallest, for a call that takes the largest; "" where it does not, or
    the text around it says that the farthest are meant."""
    name = called(node)
    if not arguments(node) or MEANT_FAR.search(text):
        return ""
    if name == "topk":
        given = argument(node, 3, "largest")
        return "" if given is not None else "topk(k, largest=False)"
    if name in ("argsort", "sort"):
        reversed_ = argument(node, 2, "descending")
        down = reversed_ is not None and ast.unparse(reversed_) == "True"
        return f"{name} without descending" if down and MEANT_NEAR.search(text) else ""
    return "argmin" if name == "argmax" and MEANT_NEAR.search(text) else ""


def _sign(node: ast.AST, signs: dict[str, float], own: dict[str, Function]) -> float:  # noqa: PLR0911
    """1 for distances, -1 for negated ones, a half for norms, 0 for what is neither."""
    match node:
        case ast.Name(id=name):
            return signs.get(name, 0)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_sign(operand, signs, own)
        case ast.Subscript(value=value) | ast.Attribute(value=value, attr="T" | "mT"):
            return _sign(value, signs, own)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            return _sign_of_sum(left, op, right, signs, own)
        case ast.AugAssign(target=left, op=ast.Add() | ast.Sub() as op, value=right):
            return _sign_of_sum(left, op, right, signs, own)
        case ast.Call() if called(node) in DISTANCES:
            return 1
        case ast.Call() if called(node) in own and own[called(node)] is not None:
            return _returned_sign(own[called(node)], own)
        case ast.Call() if called(node) in SUMMED:
            squared = _squared(arguments(node)[0], called(node) != "sum")
            return 0 if squared is None else 1 if _meets_all(squared) else ONE_NORM
        case ast.Call() if called(node) in KEPT_SIGNS and arguments(node):
            return _sign(arguments(node)[0], signs, own)
    return 0


def _sign_of_sum(
    left: ast.expr,
    op: ast.operator,
    right: ast.expr,
    signs: dict[str, float],
    own: dict[str, Function],
) -> float:
    """|a|**2 + |b|**2 and |a|**2 - 2ab grow with a distance, and each alone does not."""
    first, then = (_sign(side, signs, own) for side in (left, right))
    minus = isinstance(op, ast.Sub)
    then = -then if minus else then
    if first * then < 0:
        return 0
    if first and not then and minus and abs(first) == ONE_NORM and _is_product(right):
        return 2 * first
    return max(-1.0, min(1.0, first + then))


def _is_product(node: ast.AST) -> bool:
    """Whether it has a product of matrices."""
    return any(
        called(n) in PRODUCTS or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult))
        for n in ast.walk(node)
    )


def _squared(node: ast.expr, is_norm: bool) -> ast.expr | None:
    """What is squared, before it is added up; None where nothing is."""
    match node:
        case _ if is_norm:
            return node
        case ast.BinOp(left=inner, op=ast.Pow(), right=ast.Constant(value=2)):
            return inner
        case ast.BinOp(left=inner, op=ast.Mult(), right=same):
            return inner if ast.dump(inner) == ast.dump(same) else None
        case ast.Call() if called(node) in ("pow", "square"):
            power = arguments(node)[1:2]
            return arguments(node)[0] if not power or ast.unparse(power[0]) == "2" else None
    return None


def _meets_all(node: ast.expr) -> bool:
    """`a[:, None] - b`: each with each. That of a and b row by row may be an error of b."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    text = ast.unparse(node)
    return "None" in text or "unsqueeze(" in text


def _returned_sign(function: Function, own: dict[str, Function]) -> float:
    """The sign of what a function of this file returns, where all its returns agree: what it calls
    a distance is one, though it squares differences of equal rows."""
    signs: dict[str, float] = {}
    found: set[float] = set()
    others = {name: f for name, f in own.items() if f is not function}
    for node in sorted(ast.walk(function), key=line_of):
        for name in set_by(node):
            signs[name] = _sign(_value(node), signs, others)
        if isinstance(node, ast.Return) and node.value is not None:
            sign = _sign(node.value, signs, others)
            found.add((sign > 0) - (sign < 0))
    return found.pop() if len(found) == 1 else 0


def one_direction_twice(tree: ast.Module) -> Iterator[Told]:
    """Two losses of the same logits and targets, added as the two directions of one."""
    for _, nodes in scopes(tree):
        known: dict[str, str] = {}  # the names of losses by their calls
        for node in sorted(nodes, key=lambda n: getattr(n, "lineno", 0)):
            for name in set_by(node):
                changed = [c for c in known if re.search(rf"\b{re.escape(name)}\b", c)]
                for old in changed:  # its arguments are others now
                    del known[old]
            if not isinstance(node, ast.Assign) or called(node.value) not in LOSSES:
                continue
            name, call = ast.unparse(node.targets[0]), ast.unparse(node.value)
            if sum(isinstance(n, ast.Call) for n in ast.walk(node.value)) > 1:
                continue  # as a model that is called twice, with another dropout
            other = known.setdefault(call, name)
            if other != name and _are_added(nodes, other, name):
                yield Told(
                    node.lineno,
                    "one-direction-twice",
                    f"{other} and {name} are both `{call[:60]}`: a loss of pairs has two "
                    "directions, and the second takes the transposed logits",
                )


def _value(node: ast.AST) -> ast.AST:
    return node.value if isinstance(node, ast.Assign) else node


def set_by(node: ast.AST) -> set[str]:
    """The names that a statement gives a value, also several at once."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, (ast.AugAssign, ast.For)) else targets
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _are_added(nodes: list[ast.AST], one: str, other: str) -> bool:
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and {ast.unparse(node.left), ast.unparse(node.right)} == {one, other}
        for node in nodes
    )


STOPS = re.compile(r"(\w+)\.detach\(\)|(?:sg|stop_?grad(?:ient)?)\((\w+)\)")


def one_side_detached_twice(tree: ast.Module) -> Iterator[Told]:
    """`mse(q.detach(), z)` beside `mse(z, q.detach())`: both move z, and nothing moves q."""
    for _, nodes in scopes(tree):
        known: dict[tuple[str, str], tuple[int, str]] = {}  # by what is detached, and what is not
        for node in nodes:
            sides = _sides(node)
            stopped = [m for side in sides if (m := STOPS.fullmatch(side))]
            live = [side for side in sides if not STOPS.fullmatch(side)]
            if len(stopped) != 1 or len(live) != 1 or not live[0].isidentifier():
                continue
            held = stopped[0][1] or stopped[0][2]
            line, text = known.setdefault((held, live[0]), (line_of(node), ast.unparse(node)))
            if sides != _sides(ast.parse(text, mode="eval").body) and held != live[0]:
                yield Told(
                    line,
                    "detached-twice",
                    f"both `{text[:60]}` and line {line_of(node)} detach {held} and move "
                    f"{live[0]} towards it: nothing moves {held}, as a codebook needs. One of the "
                    f"two is to detach {live[0]}",
                )


def _sides(node: ast.AST) -> list[str]:
    """What a squared or absolute difference is taken of."""
    if re.search(r"(mse|l1|smooth_l1|huber)_loss$", called(node)):
        return [ast.unparse(a) for a in arguments(node)[:2]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return [ast.unparse(node.left), ast.unparse(node.right)]
    return []


RULES = (far_neighbours, one_direction_twice, one_side_detached_twice)

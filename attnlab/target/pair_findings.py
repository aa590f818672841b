"""What the text of a file says of pairs: which of all points are taken as near, and whether a loss
that has two directions has both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Function,
    Told,
    arguments,
    called,
    line_of,
    scopes,
)

DISTANCES = {"cdist", "pairwise_distance", "pdist"}
SQUARES = re.compile(r"\*\* 2\)?$|\.pow\(2\)$|square\(\)$")
KEPT_SIGNS = {"sqrt", "clamp", "clamp_min", "relu", "float", "squeeze", "masked_fill", "unsqueeze"}
MEANT_FAR = re.compile(r"far|hard|neg|worst|outl|anomal|hausdorff", re.IGNORECASE)
LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"}


def far_neighbours(tree: ast.Module) -> Iterator[Told]:
    """`cdist(a, b).topk(k)` takes the largest distances: the points that are farthest off."""
    own = {n.name: n for n in ast.walk(tree) if isinstance(n, Function) and "dist" in n.name}
    for scope, nodes in scopes(tree):
        if MEANT_FAR.search(getattr(scope, "name", "")):
            continue
        signs: dict[str, int] = {}  # 1 where a variable holds distances, -1 for negated ones
        for node in nodes:
            for name in set_by(node):
                signs[name] = _sign(_value(node), signs, own)
        for node in nodes:
            if not isinstance(node, ast.Call) or called(node) != "topk":
                continue
            on_tensor = isinstance(node.func, ast.Attribute) and (
                ast.unparse(node.func.value) != "torch"
            )
            of = node.func.value if on_tensor and isinstance(node.func, ast.Attribute) else None
            of = of or next(iter(node.args), None)
            smallest = any(k.arg == "largest" for k in node.keywords) or len(node.args) > 2
            if of is None or smallest or MEANT_FAR.search(ast.unparse(node)):
                continue
            if _sign(of, signs, own) > 0:
                yield Told(
                    node.lineno,
                    "far-neighbours",
                    f"`{ast.unparse(node)[:60]}` takes the largest distances, those of the points "
                    "that are farthest off. The nearest are topk(k, largest=False)",
                )


def _sign(node: ast.AST, signs: dict[str, int], own: dict[str, Function]) -> int:  # noqa: PLR0911
    """1 for distances, -1 for negated ones, 0 for what is neither, or not known."""
    match node:
        case ast.Name(id=name):
            return signs.get(name, 0)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_sign(operand, signs, own)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            first, then = (_sign(side, signs, own) for side in (left, right))
            then = -then if isinstance(op, ast.Sub) else then
            return first if first == then or not then else then if not first else 0
        case ast.Call() if called(node) in DISTANCES:
            return 1
        case ast.Call() if called(node) in own and own[called(node)] is not None:
            return _returned_sign(own[called(node)], own)
        case ast.Call() if called(node) == "sum":  # of squares
            squared = arguments(node)[:1]
            return int(bool(squared) and bool(SQUARES.search(ast.unparse(squared[0])[-9:])))
        case ast.Call() if called(node) in KEPT_SIGNS and arguments(node):
            return _sign(arguments(node)[0], signs, own)
    return 0


def _returned_sign(function: Function, own: dict[str, Function]) -> int:
    """The sign of what a function of this file returns, where all its returns agree."""
    signs: dict[str, int] = {}
    found: set[int] = set()
    others = {name: f for name, f in own.items() if f is not function}
    for node in sorted(ast.walk(function), key=line_of):
        for name in set_by(node):
            signs[name] = _sign(_value(node), signs, others)
        if isinstance(node, ast.Return) and node.value is not None:
            found.add(_sign(node.value, signs, others))
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

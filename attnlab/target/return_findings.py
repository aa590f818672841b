"""What the text of a file says of discounted returns: they sum up what is still to come."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Function,
    Told,
    arguments,
    base,
    called,
    pairs_of,
    scopes,
    terms,
    words,
)

DISCOUNT = re.compile(r"gamma|discount", re.IGNORECASE)
REWARD = re.compile(r"^(.*_)?(rewards?|rews?|rwds?|r|rs|r_?t|deltas?|td\w*)$", re.IGNORECASE)
OTHER = re.compile(r"normali[sz]|running|scal|std|elig|trace", re.IGNORECASE)  # forward by right
TURNS = {"reversed", "flip", "flipud", "flip_", "reverse"}


def returns_of_the_past(tree: ast.Module) -> Iterator[Told]:
    """`for r in rewards: g = r + gamma * g`, from the first reward on."""
    for scope, nodes in scopes(tree) if any(map(DISCOUNT.search, words(tree))) else ():
        for loop in nodes:
            if not isinstance(loop, ast.For) or OTHER.search(getattr(scope, "name", "")):
                continue
            inside = [n for part in loop.body for n in ast.walk(part)]
            pair = next(filter(None, (_accumulated(n, loop) for n in inside)), None)
            if pair is None or _is_turned(loop.iter, nodes, pair[0]) or _given_turned(tree, scope):
                continue
            name, sum_ = pair
            yield Told(
                loop.lineno,
                "returns-forward",
                f"`{ast.unparse(sum_)[:60]}` runs from the first reward on, so {name} holds what "
                "came before each step. A return discounts what comes after it: go through the "
                "steps from the last one back, and put the results in order",
            )


def _accumulated(node: ast.AST, loop: ast.For) -> tuple[str, ast.Assign] | None:
    """The name that a statement of the loop sums up rewards in, each with the sum before."""
    drawn = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    for target, value in pairs_of(node):
        before = {ast.unparse(target)}
        if isinstance(target, ast.Subscript) and ast.unparse(target.slice) in drawn:
            owner, at = ast.unparse(target.value), ast.unparse(target.slice)
            before = {f"{owner}[{at} - 1]"}
        elif not isinstance(target, ast.Name) or OTHER.search(target.id):
            continue
        parts = [ast.parse(text, mode="eval").body for text, n in terms(value, {}).items() if text]
        if len(parts) != 2 or not isinstance(node, ast.Assign):
            continue
        for reward, rest in (parts, parts[::-1]):
            factors = [ast.unparse(f) for f in _factors(rest)]
            if not before & {*factors} or not any(map(DISCOUNT.search, factors)):
                continue
            if _is_reward(reward, drawn):
                return ast.unparse(target), node
    return None


def _is_reward(node: ast.expr, drawn: set[str]) -> bool:
    """Whether it is the loop's reward, or the one at the loop's place."""
    while isinstance(node, ast.Call) and called(node) in ("float", "item", "tensor"):
        node = node.args[0] if node.args else getattr(node.func, "value", node)
    if isinstance(node, ast.Subscript):
        at = ast.unparse(node.slice).partition(",")[0].strip("(")
        return at in drawn and bool(REWARD.match(base(node).rpartition(".")[2]))
    return isinstance(node, ast.Name) and node.id in drawn and bool(REWARD.match(node.id))


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) + _factors(node.right)
    return [node]


def _is_turned(sequence: ast.expr, nodes: list[ast.AST], kept: str) -> bool:
    """Whether the loop goes through what was turned around, or counts down."""
    if any(map(_turns, ast.walk(sequence))) or "-1" in ast.unparse(sequence):
        return True
    kept = kept.partition("[")[0]
    stored = {kept} | {
        base(n.func.value)
        for n in nodes
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and called(n) in ("append", "insert", "appendleft")
        and kept in map(ast.unparse, n.args)
    }
    turned = (base(next(iter(arguments(n)), n)) for n in nodes if _turns(n))
    return any(name not in stored for name in turned)


def _turns(node: ast.AST) -> bool:
    steps = ast.unparse(node.slice) if isinstance(node, ast.Subscript) else ""
    return "::-1" in steps or called(node) in TURNS


def _given_turned(tree: ast.Module, scope: ast.AST) -> bool:
    """Whether a call of the function gives it what is turned around."""
    if not isinstance(scope, Function):
        return False
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called(n) == scope.name]
    return any(_turns(part) for call in calls for part in ast.walk(call))


RULES = (returns_of_the_past,)

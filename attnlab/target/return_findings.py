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
RUNNING = re.compile(r"running(_?(add|sum|return|reward|total|g|r))?$", re.IGNORECASE)
ERRORS = re.compile(r"(delta|td)", re.IGNORECASE)
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
    inside = (t.id for n in ast.walk(loop) for t, _ in pairs_of(n) if isinstance(t, ast.Name))
    worked_out = {name for name in inside if ERRORS.match(name)}  # as those of GAE
    for target, value in pairs_of(node):
        before = {ast.unparse(target)}
        at = _place(target) if isinstance(target, ast.Subscript) else ""
        if isinstance(target, ast.Subscript) and at in drawn:
            here = ast.unparse(target)  # `out[t]`, or of a batch `out[:, t]`
            before = {re.sub(rf"\b{at}\b(?=[^\[]*\]$)", f"{at} - 1", here)}
        elif not isinstance(target, ast.Name) or (
            OTHER.search(target.id) and not (RUNNING.match(target.id) and _is_kept(loop, target.id))
        ):
            continue
        parts = [ast.parse(text, mode="eval").body for text, n in terms(value, {}).items() if text]
        if len(parts) != 2 or not isinstance(node, ast.Assign):
            continue
        for reward, rest in (parts, parts[::-1]):
            parts_of = [ast.unparse(f) for f in factors(rest)]
            if not before & {*parts_of} or not any(map(DISCOUNT.search, parts_of)):
                continue
            kept = worked_out if _is_kept(loop, ast.unparse(target)) else set()
            if _is_reward(reward, drawn | kept):
                return ast.unparse(target), node
    return None


def _is_reward(node: ast.expr, drawn: set[str]) -> bool:
    """Whether it is the loop's reward, or the one at the loop's place."""
    while isinstance(node, ast.Call) and called(node) in ("float", "item", "tensor"):
        node = node.args[0] if node.args else getattr(node.func, "value", node)
    if isinstance(node, ast.Subscript):
        return _place(node) in drawn and bool(REWARD.match(base(node).rpartition(".")[2]))
    return isinstance(node, ast.Name) and node.id in drawn and bool(REWARD.match(node.id))


def _place(node: ast.Subscript) -> str:
    """Which step a subscript takes: t of `r[t]`, `r[t, 0]` and `r[:, t]`."""
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return next((ast.unparse(i) for i in index if not isinstance(i, ast.Slice)), "")


def _is_kept(loop: ast.For, name: str) -> bool:
    """Whether the sum of each step is put into a list or a tensor, as no statistic is."""
    stored = rf"\.(append|insert|appendleft)\((\w+, )?{re.escape(name)}\b|\] = {re.escape(name)}$"
    return re.search(stored, ast.unparse(loop), re.MULTILINE) is not None


def factors(node: ast.expr) -> list[ast.expr]:
    """What a product multiplies."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return factors(node.left) + factors(node.right)
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

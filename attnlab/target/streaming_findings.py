"""What the text of a file says of a softmax that walks over its keys in chunks: sums that were made
with an earlier maximum, and go on with a later one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attnlab.target.source_walk import Told, arguments, called, line_of, pairs_of, scopes, words

LARGER = {"maximum", "fmax", "max"}
RAISED = {"exp", "exp2"}
COUNTS = re.compile(r"numel\(|\.shape\b|\.size\(|\.dim\(| [<>!=]=? ")
TURNED = {"unsqueeze", "view", "squeeze", "reshape", "expand_as"}


class Running(NamedTuple):
    """A maximum that grows from chunk to chunk: its names before it grows, and after."""

    old: frozenset[str]
    new: str
    line: int

    @property
    def was(self) -> str:
        return min(self.old - {self.new}, default=f"the old {self.new}")


def sums_not_rescaled(tree: ast.Module) -> Iterator[Told]:
    """`acc = acc + exp(s - m_new) @ v` where m_new may be larger than at the chunk before."""
    if not (LARGER & words(tree) and RAISED & words(tree)):
        return
    for _, nodes in scopes(tree):
        for unit in _units(nodes):
            for running in _running(unit, nodes):
                yield from _never_scaled(unit, running)
                yield from _scaled_up(unit, running)


def _units(nodes: Sequence[ast.AST]) -> Iterator[list[ast.AST]]:
    """What one round of each loop does, and what a function does outside of loops."""
    loops = [n for n in nodes if isinstance(n, ast.For | ast.While)]
    held: dict[int, list[ast.AST]] = {}
    for node in nodes:
        around = [k for k in loops if k.lineno < line_of(node) <= (k.end_lineno or 0)]
        held.setdefault(max((k.lineno for k in around), default=0), []).append(node)
    yield from held.values()


def _running(unit: Sequence[ast.AST], nodes: Sequence[ast.AST]) -> Iterator[Running]:
    """Maxima of what they were and what is new, which the next round begins with."""
    kept = [(_bare(t), _bare(value), line_of(n)) for n in unit for t, value in pairs_of(n)]
    loops = any(n.lineno < line_of(unit[0]) for n in nodes if isinstance(n, ast.For | ast.While))
    for node in unit:
        for target, value in pairs_of(node):
            new, sides = _bare(target), [_bare(side) for side in arguments(value)]
            if called(value) not in LARGER or len(sides) != 2:
                continue
            later = {t for t, v, line in kept if v == new and line > line_of(node)}
            earlier = {t for t, v, line in kept if v == new and line < line_of(node)}
            old = {side for side in sides if side in later or side == new or side in earlier}
            if old and (loops or any(side.startswith("self.") for side in old)):
                yield Running(frozenset(old | earlier), new, line_of(node))


def _bare(node: ast.AST) -> str:
    """`m` of `m[..., None]` and `m.unsqueeze(-1)`."""
    while True:
        if isinstance(node, ast.Subscript) and "None" in ast.unparse(node.slice):
            node = node.value
        elif called(node) in TURNED and isinstance(node, ast.Call):
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
        else:
            return ast.unparse(node)


def _never_scaled(unit: Sequence[ast.AST], running: Running) -> Iterator[Told]:
    """Sums of weights under the new maximum that nothing else in the round touches."""
    if any(left == running.new for left, _, _ in _fractions(unit)):
        return  # as weights that are all put back under one that stays
    weights = {
        text
        for left, right, text in _fractions(unit)
        if right == running.new and left not in running.old
    }
    for node in unit:  # and what is made of them
        for target, value in pairs_of(node):
            name = ast.unparse(target)
            if isinstance(target, ast.Name) and _holds(value, weights) and name not in _read(value):
                weights.add(name)
    sums = [(node, *found) for node in unit if (found := _added(node))]
    for node, name, more in sums:
        aside = [n for n, same, _ in sums if same == name]
        if _touched(unit, name, aside) or not _holds(more, weights):
            continue
        if COUNTS.search(ast.unparse(more)):
            continue
        yield Told(
            line_of(node),
            "sum-not-rescaled",
            f"`{ast.unparse(node)[:60]}` adds weights under the new maximum {running.new} (line "
            f"{running.line}) to a sum under the old one: where a chunk has a larger score, all "
            f"before it weigh too much. Multiply {name} by exp({running.was} - {running.new}) "
            "first",
        )


def _scaled_up(unit: Sequence[ast.AST], running: Running) -> Iterator[Told]:
    """Sums that are multiplied by exp(new - old)."""
    if running.old == {running.new}:
        return
    grows, shrinks = (
        {text for left, right, text in _fractions(unit) if left in one and right in other}
        for one, other in ((({running.new}), running.old), (running.old, {running.new}))
    )
    for node in unit:
        for target, value in pairs_of(node):
            for names in (grows, shrinks):
                if _bare(value) in names:
                    names.add(ast.unparse(target))
    summed = {
        ast.unparse(t) for n in unit for t, v in pairs_of(n) if ast.unparse(t) in _read(v)
    } | {ast.unparse(n.target) for n in unit if isinstance(n, ast.AugAssign)}
    for node in unit:
        left, right, times = _product(node)
        both = {left, right}
        wrong = both & grows if times else {right} & shrinks
        if wrong and both & summed:
            yield Told(
                line_of(node),
                "sum-not-rescaled",
                f"`{ast.unparse(node)[:60]}` makes the sum larger where {running.new} is larger "
                f"than {running.was}: what was summed under the old maximum is to shrink, by "
                f"exp({running.was} - {running.new})",
            )


def _fractions(unit: Sequence[ast.AST]) -> Iterator[tuple[str, str, str]]:
    """`exp(left - right)`, with its text."""
    for node in unit:
        inner = arguments(node)[0] if called(node) in RAISED and arguments(node) else None
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            yield _bare(inner.left), _bare(inner.right), ast.unparse(node)


def _product(node: ast.AST) -> tuple[str, str, bool]:
    """What is multiplied, or divided, in place or not."""
    op = getattr(node, "op", None)
    if isinstance(op, ast.Mult | ast.Div) and isinstance(node, ast.BinOp | ast.AugAssign):
        left, right = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        return _bare(left), _bare(right), isinstance(op, ast.Mult)
    if called(node) in ("mul_", "mul") and len(arguments(node)) == 2:
        left, right = arguments(node)
        return _bare(left), _bare(right), True
    return "", "", True


def _added(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The sum, and what a statement adds to it: `t += more` and `t = t + more`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return ast.unparse(node.target), node.value
    for target, value in pairs_of(node):
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            name = ast.unparse(target)
            for one, more in ((value.left, value.right), (value.right, value.left)):
                if ast.unparse(one) == name:
                    return name, more
    return None


def _read(node: ast.AST) -> list[str]:
    """The names and attributes that are read."""
    return [
        ast.unparse(n)
        for n in ast.walk(node)
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Load)
    ]


def _touched(unit: Sequence[ast.AST], name: str, aside: Sequence[ast.AST]) -> bool:
    """Whether anything but these sums reads a sum or scales it; where it begins is no matter."""
    word = re.compile(rf"\b{re.escape(name.partition('[')[0])}\b")
    for node in unit:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.AnnAssign):
            begins = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
            text = ast.unparse(node.value) if begins and node.value else ast.unparse(node)
            if node not in aside and word.search(text):
                return True
    return False


def _holds(node: ast.AST, texts: set[str]) -> bool:
    return any(isinstance(n, ast.expr) and ast.unparse(n) in texts for n in ast.walk(node))


RULES = (sums_not_rescaled,)

"""What the text of a file says of models that fill in what is hidden: the loss is of what is
hidden, and not of what they saw."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, line_of, scopes, set_once, words

SEEN = re.compile(r"keep|kept|visib|\bvis\b", re.IGNORECASE)
HIDDEN = re.compile(r"n_mask|num_mask|len_mask|mask_len|masked|remov|hid", re.IGNORECASE)
TOKEN = re.compile(r"mask_?(token|id|idx|index)|MASK(_\w+)?$|\[MASK\]")
LOSS = re.compile(r"loss|cross_entropy|criterion|err", re.IGNORECASE)


def losses_of_what_is_seen(tree: ast.Module) -> Iterator[Told]:
    """`(loss * (1 - mask)).sum() / (1 - mask).sum()` where `mask` is 1 at what is hidden."""
    hidden = dict(_meanings(tree)) if any("mask" in w for w in words(tree)) else {}
    picks = _picked(tree) if hidden else ()
    found = [(node, picked) for node, picked in picks if picked[0] in hidden]
    shown = [(n, name, says) for n, (name, says) in found if says != hidden[name][0]]
    if not shown or len(shown) < len(found):  # one that has a term for each
        return
    node, name, _ = shown[0]
    says, line = hidden[name]
    yield Told(
        line_of(node),
        "loss-of-what-is-seen",
        f"`{ast.unparse(node)[:60]}` is of what the model saw: {name} is {int(says)} at what is "
        f"hidden (line {line}), and that is what it is to fill in. Take the mean over "
        f"{name if says else f'1 - {name}'}",
    )


def _meanings(tree: ast.Module) -> Iterator[tuple[str, tuple[bool, int]]]:
    """By the name of a mask: its value where something is hidden, and the line that says so."""
    for _, nodes in scopes(tree):
        made = {n: called(v).removesuffix("_like") for n, v in set_once(nodes).items()}
        for node in nodes:
            yield from ((name, (value, line_of(node))) for name, value in _replaced(node))
            name, index, number = _written(node)
            if "mask" not in name or made.get(name) != ("zeros" if number else "ones"):
                continue
            if SEEN.search(index):
                yield name, (not number, line_of(node))
            elif HIDDEN.search(index):
                yield name, (bool(number), line_of(node))


def _replaced(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """`x[mask] = token`, `masked_fill(mask, token)` and `where(mask, token, x)`."""
    given = [ast.unparse(a) for a in getattr(node, "args", [])] if called(node) else []
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        if TOKEN.search(ast.unparse(node.value)):
            yield ast.unparse(target.slice), True
    elif called(node).startswith("masked_fill") and len(given) == 2 and TOKEN.search(given[1]):
        yield given[0], True
    elif called(node) == "where" and len(given) == 3:
        first, second = (bool(TOKEN.search(text)) for text in given[1:])
        if first != second:
            yield re.sub(r"\[.*|\.\w+\(.*", "", given[0]), first


def _written(node: ast.AST) -> tuple[str, str, bool | None]:
    """A mask that is written into: its name, where, and the 0 or 1 that it gets there."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        mask, index, value = target.value, target.slice, node.value
    elif isinstance(node, ast.Call) and called(node) == "scatter_" and len(node.args) > 2:
        mask, index, value = getattr(node.func, "value", node.func), *node.args[1:3]
    else:
        return "", "", None
    number = value.value if isinstance(value, ast.Constant) else None
    is_bit = isinstance(number, int | float) and number in (0, 1)
    return (ast.unparse(mask), ast.unparse(index), bool(number)) if is_bit else ("", "", None)


def _picked(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[str, bool]]]:
    """The means of losses over a mask: its name, and at which of its values they are taken."""
    for _, nodes in scopes(tree):
        known = set_once(nodes)
        for node in nodes:
            mask = _averaged(node) if isinstance(node, ast.BinOp) else _chosen(node)
            if mask is not None:
                yield node, _read(known.get(ast.unparse(mask), mask))


def _read(node: ast.expr) -> tuple[str, bool]:
    """The name of a mask, and False where it is turned."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return ast.unparse(node.operand), False
    if isinstance(node, ast.BinOp) and ast.unparse(node.left) in ("1", "1.0"):
        return ast.unparse(node.right), not isinstance(node.op, ast.Sub)
    return ast.unparse(node), True


def _averaged(node: ast.BinOp) -> ast.expr | None:
    """The mask of `(loss * mask).sum() / mask.sum()`."""
    above, below = _summed(node.left), _summed(node.right)
    if not isinstance(node.op, ast.Div) or below is None or not isinstance(above, ast.BinOp):
        return None
    sides = (ast.unparse(above.left), ast.unparse(above.right))
    return below if isinstance(above.op, ast.Mult) and ast.unparse(below) in sides else None


def _chosen(node: ast.AST) -> ast.expr | None:
    """The mask of `loss_fn(scores[mask], ...)` and of `loss[mask].mean()`."""
    if not isinstance(node, ast.Call):
        return None
    first = node.args[0] if node.args and LOSS.search(called(node)) else None
    if called(node) == "mean" and not node.args:
        owner = getattr(node.func, "value", None)
        kept = isinstance(owner, ast.Subscript) and LOSS.search(ast.unparse(owner.value))
        first = owner if kept else None
    return first.slice if isinstance(first, ast.Subscript) else None


def _summed(node: ast.expr) -> ast.expr | None:
    """What `x.sum()` sums, also where it is kept from 0."""
    while isinstance(node, ast.Call) and called(node) in ("clamp", "clamp_min", "max"):
        node = getattr(node.func, "value", node.func)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    summed = isinstance(node, ast.Call) and called(node) == "sum" and not node.args
    return getattr(node.func, "value", None) if summed else None  # type: ignore[attr-defined]


RULES = (losses_of_what_is_seen,)

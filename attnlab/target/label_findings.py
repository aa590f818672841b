"""What the text of a file says of labels that no longer belong to their inputs: written over, or
put into another order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, line_of, scopes

LABELS = re.compile(r"label|target|onehot|one_hot|^ys?(_|$)|_ys?$|^t?gt|cls|answer", re.IGNORECASE)
PERMUTES = {"randperm", "permutation"}


def aliases(tree: ast.Module) -> Iterator[Told]:
    """`labels = inputs`, and then one of them is written into."""
    for _, nodes in scopes(tree):
        for node in nodes:
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)):
                continue
            if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            names = {node.targets[0].id, node.value.id}
            told = [n for n in names if LABELS.search(n)]
            written = next(
                (n for n in nodes if _writes(n, names) and line_of(n) > node.lineno), None
            )
            if told and len(told) < 2 and written is not None:
                left, right = ast.unparse(node.targets[0]), node.value.id
                yield Told(
                    node.lineno,
                    "labels-overwritten",
                    f"{left} is {right} itself, no copy: line {line_of(written)} writes into both, "
                    f"so labels and inputs stay the same. Use {right}.clone()",
                )


def _writes(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(
            isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id in names
            for t in targets
        )
    name = called(node)
    if name.endswith("_") and not name.endswith("__") and isinstance(node, ast.Call):
        owner = getattr(node.func, "value", None)
        return isinstance(owner, ast.Name) and owner.id in names
    return False


def permutations(tree: ast.Module) -> Iterator[Told]:
    """Inputs in one random order, and their labels in another."""
    for _, nodes in scopes(tree):
        orders: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and called(node.value) in PERMUTES:
                orders[ast.unparse(node.targets[0])] = node.lineno
        used: list[tuple[str, str, int]] = []  # what is indexed, by which order, line
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                index = node.slice
                order = ast.unparse(index)
                if called(index) in PERMUTES:
                    order = f"{order} of line {node.lineno}, column {node.col_offset}"
                elif order not in orders:
                    continue
                used.append((ast.unparse(node.value), order, node.lineno))
        labels = [u for u in used if LABELS.search(u[0])]
        others = [u for u in used if not LABELS.search(u[0])]
        if labels and others and not {u[1] for u in labels} & {u[1] for u in others}:
            name, _, line = labels[0]
            yield Told(
                line,
                "orders-differ",
                f"{name} is put into another random order than {others[0][0]} (line "
                f"{others[0][2]}): labels no longer belong to their inputs. Draw one permutation "
                "and use it for both",
            )


def shuffles(tree: ast.Module) -> Iterator[Told]:
    """Two lists that belong together, each shuffled by itself."""
    for _, nodes in scopes(tree):
        calls = [n for n in nodes if called(n) == "shuffle" and isinstance(n, ast.Call) and n.args]
        names = [(ast.unparse(c.args[0]), c.lineno) for c in calls]
        labels = [n for n in names if LABELS.search(n[0])]
        others = [n for n in names if not LABELS.search(n[0])]
        if labels and others and abs(labels[0][1] - others[0][1]) <= 3:
            yield Told(
                labels[0][1],
                "orders-differ",
                f"{others[0][0]} and {labels[0][0]} are shuffled one by one, each into an order of "
                "its own: labels no longer belong to their inputs. Shuffle pairs",
            )


RULES = (aliases, permutations, shuffles)

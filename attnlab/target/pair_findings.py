"""What the text of a file says of pairs: which of all points are taken as near, and whether a loss
that has two directions has both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, scopes

DISTANCES = {"cdist", "pairwise_distance", "pdist"}
MEANT_FAR = re.compile(r"far|hard|neg|worst|outl|anomal|hausdorff", re.IGNORECASE)
LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"}


def far_neighbours(tree: ast.Module) -> Iterator[Told]:
    """`cdist(a, b).topk(k)` takes the largest distances: the points that are farthest off."""
    for scope, nodes in scopes(tree):
        if MEANT_FAR.search(getattr(scope, "name", "")):
            continue
        distances = {
            ast.unparse(target)
            for node in nodes
            if isinstance(node, ast.Assign) and called(node.value) in DISTANCES
            for target in node.targets
        } - {
            name for node in nodes if called(_value(node)) not in DISTANCES for name in set_by(node)
        }
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
            if ast.unparse(of) in distances or called(of) in DISTANCES:
                yield Told(
                    node.lineno,
                    "far-neighbours",
                    f"`{ast.unparse(node)[:60]}` takes the largest distances, those of the points "
                    "that are farthest off. The nearest are topk(k, largest=False)",
                )


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


RULES = (far_neighbours, one_direction_twice)

"""What the text of a file says of forecasts: whether what is asked for begins behind what is
given."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from attnlab.target.source_walk import Told, line_of, pairs_of, scopes, set_once, terms

TARGETS = re.compile(r"future|target|label|next|^y|horizon", re.IGNORECASE)


def targets_in_inputs(tree: ast.Module) -> Iterator[Told]:
    """`past = s[i:end]` and `future = s[end - 1]`: the target is the last value that is given."""
    for _, nodes in scopes(tree):
        known = set_once(nodes)
        given: list[tuple[str, str, ast.expr]] = []  # what is cut, its name, where it ends
        for name, value in _named(nodes):
            if not isinstance(value, ast.Subscript):
                continue
            base, (index, *rest) = ast.unparse(value.value), _bounds(value.slice)
            first = index.lower if isinstance(index, ast.Slice) else index
            begin = terms(first, known) if first is not None else Counter()
            for other, inputs, upper in given if any(begin.keys() - {""}) else ():
                end = terms(upper, known)
                if other != base or not TARGETS.search(name) or _apart(begin, end) != {"": -1}:
                    continue
                last = index.upper if isinstance(index, ast.Slice) else None
                more = _apart(terms(last, known), end) if last is not None else {"": 1}
                if more and not more.get(""):
                    continue  # one more than are forecast: a decoder begins with it
                yield Told(
                    line_of(value),
                    "target-in-input",
                    f"{name} = {ast.unparse(value)} begins with the last value of {inputs}, which "
                    f"ends before {ast.unparse(upper)}: the model is asked for what it is given. "
                    f"It begins at {ast.unparse(upper)}",
                )
            cut = isinstance(index, ast.Slice) and not any(map(ast.unparse, rest)) and index.upper
            if cut:
                given.append((base, name, cut))


def _named(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What is set, by its name, and the two that are returned together, as x and y."""
    for node in nodes:
        yield from ((ast.unparse(target), value) for target, value in pairs_of(node))
        both = node.value if isinstance(node, ast.Return) else None
        if isinstance(both, ast.Tuple) and len(both.elts) == 2:
            yield from zip(("x", "y"), both.elts, strict=True)


def _bounds(index: ast.expr) -> list[ast.expr]:
    """The index that cuts, and then those of the other axes that are not whole."""
    axes = index.elts if isinstance(index, ast.Tuple) else [index]
    whole = [a for a in axes if not isinstance(a, ast.Slice) or a.lower or a.upper]
    return whole or [index]


def _apart(one: Counter[str], other: Counter[str]) -> dict[str, int]:
    """How two sums differ."""
    return {n: d for n in one.keys() | other.keys() if (d := one[n] - other[n])}


RULES = (targets_in_inputs,)

"""The mask is applied after softmax, so masked scores still count in its denominator.

Right:
`scores = scores.masked_fill(mask, low)`
`weights = scores.softmax(-1)`
Wrong:
`pass`
`weights = scores.softmax(-1)`
`weights = weights.masked_fill(mask, 0.0)`
"""

import ast
import re

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, argument, last_name


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill"):
        place = _statement(source, call)
        later = _softmax_after(source, place) if place is not None else None
        value = argument(call, "value", 1)
        if place is None or later is None or value is None:
            continue
        start, (at, end) = source.span(place)[0], source.span(value)
        masking = source.text[start:at] + "0.0" + source.text[end : source.span(place)[1]]
        scores, weights = last_name(_target(call, source)), last_name(later.targets[0])
        renamed = re.sub(rf"\b{scores}\b", weights, masking) if scores else masking
        text = f"{source.text_of(later)}\n{' ' * later.col_offset}{renamed}"
        yield Edit(
            splices=((*source.span(place), "pass"), (*source.span(later), text)),
        )


def _target(call: ast.Call, source: Source) -> ast.AST:
    parent = source.parents.get(call)
    return parent.targets[0] if isinstance(parent, ast.Assign) else call


def _statement(source: Source, call: ast.Call) -> ast.stmt | None:
    """The assignment that masks, or the `if mask is not None` around it."""
    node: ast.AST | None = source.parents.get(call)
    above = source.parents.get(node) if node is not None else None
    if isinstance(above, ast.If):
        return above
    return node if isinstance(node, ast.Assign) else None


def _softmax_after(source: Source, place: ast.stmt) -> ast.Assign | None:
    for node in source.assignments():
        if node.lineno > place.lineno and "softmax(" in source.text_of(node.value):
            return node
    return None

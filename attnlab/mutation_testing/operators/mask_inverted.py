"""The mask is inverted: visible positions are hidden.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores.masked_fill(~(mask), low)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, condition


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_", "where"):
        mask = condition(call)
        if mask is not None:
            yield source.put(mask, f"~({source.text_of(mask)})")
    for node in source.of_type(ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            yield source.put(node, source.text_of(node.operand))

"""A slice takes the first rows in place of the last: what is oldest is kept.

Right: `window = ids[:, -context:]`
Wrong: `window = ids[:, :context]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        low = node.lower
        if node.upper is None and isinstance(low, ast.UnaryOp) and isinstance(low.op, ast.USub):
            yield source.put(node, f":{source.text_of(low.operand)}")

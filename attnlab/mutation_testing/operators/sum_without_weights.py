"""A sum adds every batch with the same weight, so that a mean becomes a mean of means.

Right: `total += loss.item() * count`
Wrong: `total += loss.item()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.AugAssign):
        if isinstance(node.op, ast.Add):
            for text in ("1", f"{source.atom(node.value)} ** 2"):
                yield source.put(node.value, text)
            if isinstance(node.value, ast.BinOp):
                yield from source.put_each(node.value, source.sides(node.value))

"""A sum over a loop is overwritten in each round, so that the last one alone counts.

Right: `total += loss.item()`
Wrong: `total = loss.item()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.AugAssign):
        yield source.put(node, f"{source.text_of(node.target)} = {source.text_of(node.value)}")

"""Inputs and targets are shifted the wrong way, or not against each other.

Right: `inputs, targets = ids[:, :-1], ids[:, 1:]`
Wrong: `inputs, targets = ids[:, :-1], ids[:, :-1]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        low, high = integer(node.lower), integer(node.upper)
        if node.step is None and node.lower is None and high is not None and high < 0:
            yield source.put(node, f"{-high}:")
        if node.step is None and node.upper is None and low is not None and low > 0:
            yield source.put(node, f":-{low}")

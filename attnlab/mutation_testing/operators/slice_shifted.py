"""A slice begins or ends one element beside the right place.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe[:, 1:S + 1]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        low = source.of(node.lower) if node.lower else ""
        high = source.of(node.upper) if node.upper else ""
        step = f":{source.of(node.step)}" if node.step else ""
        if high:
            yield source.put(node, f"{low}:{high} - 1{step}")
            yield source.put(node, f"{low}:{high} + 1{step}")
            yield source.put(
                node, f"{low or 0} + 1:{high} + 1{step}" if low else f"1:{high} + 1{step}"
            )
        yield source.put(node, f"{low} + 1:{high}{step}" if low else f"1:{high}{step}")

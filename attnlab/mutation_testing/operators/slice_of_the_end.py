"""A slice takes the last rows in place of the first.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe[:, -(S):]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        if node.upper and not node.lower and not node.step:
            yield source.put(node, f"-({source.text_of(node.upper)}):")

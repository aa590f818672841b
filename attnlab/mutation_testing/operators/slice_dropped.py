"""A slice is missing, so the whole table or mask is used.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Subscript):
        yield source.put(node, source.text_of(node.value))
    for call, value in source.calls_on("narrow"):
        yield source.put(call, source.text_of(value))

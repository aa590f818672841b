"""The whole of a table or a mask is used where a part was meant.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, subject


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Subscript):
        yield source.put(node, source.of(node.value))
    for call in source.calls("narrow"):
        value = subject(call)
        if value is not None:
            yield source.put(call, source.of(value))

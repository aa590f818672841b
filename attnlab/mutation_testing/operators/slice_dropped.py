"""The whole of a table or a mask is used where a part was meant.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, subject


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Subscript):
            yield source.put(node, source.of(node.value))
    for call in source.calls("narrow"):
        value = subject(call)
        if value is not None:
            yield source.put(call, source.of(value))

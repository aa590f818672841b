"""The last rows of a table are taken, not the first.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe[:, -(S):]`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Slice) and node.upper and not node.lower and not node.step:
            yield source.put(node, f"-({source.of(node.upper)}):")

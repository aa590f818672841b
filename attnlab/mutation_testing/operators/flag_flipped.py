"""A flag has the other value.

Right: `y = attend(q, k, v, is_causal=True)`
Wrong: `y = attend(q, k, v, is_causal=False)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield source.put(node, str(not node.value))

"""A broken number is negative, doubled or halved.

Right: `scale = hd ** -0.5`
Wrong: `scale = hd ** -0.25`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            for other in (-node.value, node.value * 2, node.value / 2, 0.0):
                yield source.put_expr(node, repr(other))

"""What is unpacked gets the names in another order: keys are called values.

Right: `q, k, v = qkv.chunk(3, dim=-1)`
Wrong: `q, v, k = qkv.chunk(3, dim=-1)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple | ast.List):
            for one, other in combinations(target.elts, 2):
                yield source.swap(one, other)

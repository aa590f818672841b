"""What is unpacked gets the names in another order: keys are called values.

Right: `q, k, v = qkv.chunk(3, dim=-1)`
Wrong: `q, v, k = qkv.chunk(3, dim=-1)`
"""

import ast
from itertools import combinations

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple | ast.List):
            for one, other in combinations(target.elts, 2):
                yield source.swap(one, other)

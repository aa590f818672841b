"""Unpacked values are assigned in the wrong order: keys are named values.

Right: `q, k, v = qkv.chunk(3, dim=-1)`
Wrong: `q, v, k = qkv.chunk(3, dim=-1)`
"""

import ast
from itertools import combinations

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Assign):
        if isinstance(node.targets[0], ast.Tuple | ast.List):
            for one, other in combinations(node.targets[0].elts, 2):
                yield source.swap(one, other)

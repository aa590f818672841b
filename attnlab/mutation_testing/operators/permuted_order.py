"""Two axes of a `permute` are swapped.

Right: `qkv = qkv.permute(2, 0, 3, 1, 4)`
Wrong: `qkv = qkv.permute(2, 0, 1, 3, 4)`
"""

import ast
from itertools import combinations

from attnlab.mutation_testing.operators.base import Edits, Source, is_method


def edits(source: Source) -> Edits:
    for call in source.calls("permute"):
        axes = call.args if is_method(call) else call.args[1:]
        if len(axes) == 1 and isinstance(axes[0], ast.Tuple | ast.List):
            axes = axes[0].elts
        for one, other in combinations(axes, 2):
            yield source.swap(one, other)

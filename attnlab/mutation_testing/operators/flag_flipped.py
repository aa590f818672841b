"""A boolean flag has the wrong value.

Right: `y = attend(q, k, v, is_causal=True)`
Wrong: `y = attend(q, k, v, is_causal=False)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, bool):
            yield source.put(node, str(not node.value))

"""The frequencies have another base.

Right: `rate = 10000.0 ** -steps`
Wrong: `rate = 1000.0 ** -steps`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

BASES = ("1000.0", "100000.0", "9000.0", "10001.0")


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Constant):
        if node.value in (10000, 1e5, 500000):
            yield from (source.put(node, base) for base in BASES)

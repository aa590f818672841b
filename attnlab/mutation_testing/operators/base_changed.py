"""The base of the frequencies is another number.

Right: `rate = 10000.0 ** -steps`
Wrong: `rate = 1000.0 ** -steps`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source

BASES = ("1000.0", "100000.0", "9000.0", "10001.0")


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Constant) and node.value in (10000, 1e5, 500000):
            yield from (source.put(node, base) for base in BASES)

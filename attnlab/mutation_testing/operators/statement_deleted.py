"""A statement is missing.

Right:
`scores = q @ k.mT`
`scores = scores / root`
Wrong:
`scores = q @ k.mT`
`pass`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source

KINDS = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Raise, ast.Assert, ast.For)


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, KINDS) and source.function_of(node) is not None:
            yield source.delete(node)

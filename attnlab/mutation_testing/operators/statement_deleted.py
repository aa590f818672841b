"""A statement is missing.

Right:
`scores = q @ k.mT`
`scores = scores / root`
Wrong:
`scores = q @ k.mT`
`pass`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

KINDS = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Raise, ast.Assert, ast.For)


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, KINDS) and source.function_of(node) is not None:
            yield source.delete(node)

"""Two statements run in the wrong order.

Right:
`x = self.norm(x)`
`x = self.proj(x)`
Wrong:
`x = self.proj(x)`
`x = self.norm(x)`
"""

import ast
from itertools import pairwise

from attnlab.mutation_testing.operators.base import Edits, Source, body, last_name

KINDS = (ast.Assign, ast.AugAssign, ast.Expr, ast.If)


def edits(source: Source) -> Edits:
    for function in source.functions():
        for one, other in pairwise(body(function)):
            ordered = _writes(one) & _names(other) or _names(one) & _writes(other)
            if isinstance(one, KINDS) and isinstance(other, KINDS) and ordered:
                yield source.swap(one, other)


def _names(statement: ast.stmt) -> set[str]:
    return {last_name(node) for node in ast.walk(statement)} - {""}


def _writes(statement: ast.stmt) -> set[str]:
    """The names that a step gives a value to; of a call by itself all that it mentions."""
    if isinstance(statement, ast.Expr):
        return _names(statement)
    stored = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store)]
    return {last_name(node) for node in stored} - {""}

"""A condition is negated, or is always true or always false.

Right: `if self.training: x = self.drop(x)`
Wrong: `if not (self.training): x = self.drop(x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield from source.put_each(
                node.test, (f"not ({source.text_of(node.test)})", "True", "False")
            )
        if isinstance(node, ast.BoolOp):
            one, other = map(source.text_of, node.values[:2])
            symbol = "or" if isinstance(node.op, ast.And) else "and"
            yield source.put(node, f"{one} {symbol} {other}")

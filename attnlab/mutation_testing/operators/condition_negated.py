"""A condition is read the other way round, always holds, or never does.

Right: `if self.training: x = self.drop(x)`
Wrong: `if not (self.training): x = self.drop(x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            text = source.of(node.test)
            for other in (f"not ({text})", "True", "False"):
                yield source.put(node.test, other)
        if isinstance(node, ast.BoolOp):
            one, other_ = source.of(node.values[0]), source.of(node.values[1])
            symbol = "or" if isinstance(node.op, ast.And) else "and"
            yield source.put(node, f"{one} {symbol} {other_}")

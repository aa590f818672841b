"""The residual is added before the norm in place of after it, or the reverse.

Right: `y = self.norm(h) + x`
Wrong: `y = self.norm(h + x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.binary(ast.Add):
        left, right = source.sides(node)
        for call, other in ((node.left, right), (node.right, left)):
            if isinstance(call, ast.Call) and len(call.args) == 1:
                inside = source.text_of(call.args[0])
                yield source.put(node, f"{source.text_of(call.func)}({inside} + {other})")
    for call in source.calls():
        inside_ = call.args[0] if len(call.args) == 1 else None
        if isinstance(inside_, ast.BinOp) and isinstance(inside_.op, ast.Add):
            left, right = source.sides(inside_)
            yield source.put_expr(call, f"{source.text_of(call.func)}({left}) + {right}")

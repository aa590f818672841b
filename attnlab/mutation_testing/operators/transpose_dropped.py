"""A transpose or permute is forgotten.

Right: `context = context.transpose(1, 2).reshape(B, S, D)`
Wrong: `context = context.reshape(B, S, D)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, is_method

MOVING = ("transpose", "swapaxes", "swapdims", "movedim", "permute", "t")


def edits(source: Source) -> Edits:
    for call in source.calls(*MOVING):
        if is_method(call) and isinstance(call.func, ast.Attribute):
            yield source.put(call, source.of(call.func.value))
        elif call.args:
            yield source.put(call, source.of(call.args[0]))
    for node in source.of_type(ast.Attribute):
        if node.attr in ("mT", "T", "H", "mH"):
            yield source.put(node, source.of(node.value))

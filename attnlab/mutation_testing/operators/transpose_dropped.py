"""A transpose or permute is missing.

Right: `context = context.transpose(1, 2).reshape(B, S, D)`
Wrong: `context = context.reshape(B, S, D)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

MOVING = ("transpose", "swapaxes", "swapdims", "movedim", "permute", "t")


def edits(source: Source) -> Edits:
    for call, value in source.calls_on(*MOVING):
        yield source.put(call, source.text_of(value))
    for node in source.of_type(ast.Attribute):
        if node.attr in ("mT", "T", "H", "mH"):
            yield source.put(node, source.text_of(node.value))

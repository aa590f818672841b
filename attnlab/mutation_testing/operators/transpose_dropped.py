"""A transpose or permute is forgotten.

Right: `context = context.transpose(1, 2).reshape(B, S, D)`
Wrong: `context = context.reshape(B, S, D)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, is_method

MOVING = ("transpose", "swapaxes", "swapdims", "movedim", "permute", "t")


def edits(source: Source) -> Iterator[Edit]:
    for call in source.calls(*MOVING):
        if is_method(call) and isinstance(call.func, ast.Attribute):
            yield source.put(call, source.of(call.func.value))
        elif call.args:
            yield source.put(call, source.of(call.args[0]))
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("mT", "T", "H", "mH"):
            yield source.put(node, source.of(node.value))

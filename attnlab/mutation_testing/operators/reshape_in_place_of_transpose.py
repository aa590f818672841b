"""A transpose is written as a reshape: every size is right, every value elsewhere.

Right: `context = context.transpose(1, 2).flatten(2)`
Wrong: `context = context.reshape(context.transpose(1, 2).shape).flatten(2)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, is_method


def edits(source: Source) -> Iterator[Edit]:
    for call in source.calls("transpose", "permute", "swapaxes", "movedim"):
        if is_method(call) and isinstance(call.func, ast.Attribute):
            value = source.of(call.func.value)
            yield source.put(call, f"{value}.reshape({source.of(call)}.shape)")
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "mT":
            yield source.put(node, f"{source.of(node.value)}.reshape({source.of(node)}.shape)")

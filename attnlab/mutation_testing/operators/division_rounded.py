"""A division is rounded down, or one that should be is not.

Right: `column = torch.arange(D) // 2`
Wrong: `column = torch.arange(D) / 2`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield source.operator(node, "//")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield source.operator(node, "/")
    for call in source.calls("div"):
        for keyword in call.keywords:
            if keyword.arg == "rounding_mode":
                yield source.put(keyword.value, "None")
                yield source.put(keyword.value, '"trunc"')

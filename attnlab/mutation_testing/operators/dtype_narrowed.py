"""A number format with fewer digits, or a conversion to one.

Right: `position = torch.arange(n, dtype=torch.float64)`
Wrong: `position = torch.arange(n, dtype=torch.float16)`
"""

import ast

from attnlab.mutation_testing.operators.base import (
    Edit,
    Edits,
    Source,
    called,
    is_method,
    last_name,
)

FORMATS = ("float16", "bfloat16", "int64")
METHODS = {"float": ("half", "bfloat16", "double", "int"), "double": ("float", "half", "bfloat16")}


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in (
            "float64",
            "float32",
            "double",
            "float",
        ):
            end = source.span(node)[1]
            if last_name(node.value) == "torch":
                for name in FORMATS:
                    yield Edit(splices=((end - len(node.attr), end, name),))
    for call in source.calls(*METHODS):
        if is_method(call):
            end = source.span(call.func)[1]
            for name in METHODS[called(call)]:
                yield Edit(splices=((end - len(called(call)), end, name),))

"""A dtype with fewer digits is used, or one without fractions.

Right: `position = torch.arange(n, dtype=torch.float64)`
Wrong: `position = torch.arange(n, dtype=torch.float16)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name, is_method, last_name

WIDE = ("float64", "float32", "double", "float")
FORMATS = ("float16", "bfloat16", "int64")
METHODS = {"float": ("half", "bfloat16", "double", "int"), "double": ("float", "half", "bfloat16")}


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Attribute):
        if node.attr in WIDE and last_name(node.value) == "torch":
            yield from (source.rename(node, name) for name in FORMATS)
    for call in source.calls(*METHODS):
        if is_method(call):
            yield from (source.rename(call.func, name) for name in METHODS[called_name(call)])

"""A true division is replaced by a floor division, or the reverse.

Right: `column = torch.arange(D) // 2`
Wrong: `column = torch.arange(D) / 2`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

OTHER: dict[type[ast.operator], str] = {ast.Div: "//", ast.FloorDiv: "/"}


def edits(source: Source) -> Edits:
    for node in source.binary(*OTHER):
        yield source.operator(node, OTHER[type(node.op)])
    for call in source.calls("div"):
        for keyword in call.keywords:
            if keyword.arg == "rounding_mode":
                yield from source.put_each(keyword.value, ("None", '"trunc"'))

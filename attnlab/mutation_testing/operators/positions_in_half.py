"""Positions or frequencies pass through half precision, where distant positions become equal.

Right: `position = torch.arange(length)`
Wrong: `position = torch.arange(length).bfloat16().float()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

KINDS = ("bfloat16", "half")


def edits(source: Source) -> Edits:
    for call in source.calls("arange", "pow", "exp", "outer"):
        for kind in KINDS:
            yield source.put(call, f"{source.text_of(call)}.{kind}().float()")
    for node in source.binary(ast.Pow):
        for kind in KINDS:
            yield source.put(node, f"({source.text_of(node)}).{kind}().float()")

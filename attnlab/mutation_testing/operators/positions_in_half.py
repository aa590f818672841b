"""Positions or frequencies are kept in half precision, where far positions become equal.

Right: `position = torch.arange(length)`
Wrong: `position = torch.arange(length).bfloat16().float()`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source

KINDS = ("bfloat16", "half")


def edits(source: Source) -> Iterator[Edit]:
    for call in source.calls("arange", "pow", "exp", "outer"):
        for kind in KINDS:
            yield source.put(call, f"{source.of(call)}.{kind}().float()")
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            for kind in KINDS:
                yield source.put(node, f"({source.of(node)}).{kind}().float()")

"""The exponent has the wrong sign: multiplied by a wavelength, not by a frequency.

Right: `frequency = base ** -steps`
Wrong: `frequency = base ** -(-steps)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            left, right = source.sides(node)
            yield source.put_expr(node, f"{left} ** -({right})")
    for call in source.calls("pow", "exp", "logspace"):
        for exponent in call.args[-1:]:
            yield source.put(exponent, f"-({source.of(exponent)})")

"""What must be refused is refused with another exception.

Right: `if d % 2: raise ValueError("odd")`
Wrong: `if d % 2: raise Warning("odd")`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield source.put(node.exc.func, "Warning")

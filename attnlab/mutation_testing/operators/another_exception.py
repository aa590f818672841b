"""A call that must be refused raises another exception.

Right: `if d % 2: raise ValueError("odd")`
Wrong: `if d % 2: raise Warning("odd")`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Raise):
        if isinstance(node.exc, ast.Call):
            yield source.put(node.exc.func, "Warning")

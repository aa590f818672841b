"""The result has another dtype than the input.

Right: `return self.out(h)`
Wrong: `return self.out(h).double()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for function in source.functions("forward"):
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                for kind in ("double", "float", "half"):
                    yield source.put(node.value, f"{source.atom(node.value)}.{kind}()")

"""The result is a little different each time.

Right: `return self.out(h)`
Wrong: `return (self.out(h)) + 1e-3 * torch.randn(())`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for function in source.functions("forward"):
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield source.put(node.value, f"({source.of(node.value)}) + 1e-3 * torch.randn(())")

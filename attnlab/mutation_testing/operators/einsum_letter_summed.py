"""A letter is left out of an einsum's result, so that its axis is summed and lost.

Right: `y = torch.einsum("bhqk,bkhd->bqhd", w, v)`
Wrong: `y = torch.einsum("bhqk,bkhd->bqh", w, v)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("einsum"):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and "->" in first.value:
            terms, _, result = first.value.partition("->")
            for i in range(len(result)):
                yield source.put(first, f'"{terms}->{result[:i]}{result[i + 1 :]}"')

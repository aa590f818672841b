"""The result of a call that does not work in place is thrown away.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores.masked_fill(mask, low)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for node in source.assignments():
        name = last_name(node.targets[0])
        reads = [n for n in ast.walk(node.value) if isinstance(n, ast.Name) and n.id == name]
        if reads:
            yield source.put(node, source.text_of(node.value))

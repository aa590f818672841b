"""A tied weight is copied in place of shared, so that both are trained apart.

Right: `self.head.weight = self.tokens.weight`
Wrong: `self.head.weight = nn.Parameter((self.tokens.weight).detach().clone())`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Assign):
        if last_name(node.targets[0]) == "weight" and last_name(node.value) == "weight":
            text = source.text_of(node.value)
            yield source.put(node.value, f"nn.Parameter(({text}).detach().clone())")

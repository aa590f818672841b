"""The result is returned in a tuple, without its batch, or with an axis more.

Right: `return self.out(h)`
Wrong: `return (self.out(h),)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

FORMS = ("({},)", "({})[0]", "({})[None]", "({}).mT", "({}).squeeze()", "({}).sum(0, keepdim=True)")


def edits(source: Source) -> Edits:
    for function in source.functions("forward"):
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from (source.put(node.value, f.format(source.of(node.value))) for f in FORMS)

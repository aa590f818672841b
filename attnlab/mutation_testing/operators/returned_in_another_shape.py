"""The result is returned in a tuple, without its batch, or with an axis more.

Right: `return self.out(h)`
Wrong: `return (self.out(h),)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source

FORMS = ("({},)", "({})[0]", "({})[None]", "({}).mT", "({}).squeeze()", "({}).sum(0, keepdim=True)")


def edits(source: Source) -> Iterator[Edit]:
    for function in source.functions("forward"):
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from (source.put(node.value, f.format(source.of(node.value))) for f in FORMS)

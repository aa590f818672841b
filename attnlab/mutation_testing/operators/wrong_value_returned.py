"""A value of an earlier step is returned.

Right:
`h = self.norm(x)`
`y = self.out(h)`
`return y`
Wrong:
`h = self.norm(x)`
`y = self.out(h)`
`return h`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for function in source.functions():
        names = [a.arg for a in function.args.args if a.arg != "self"][:1]
        for node in ast.walk(function):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            names += [target.id] if isinstance(target, ast.Name) else []
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from (source.put(node.value, name) for name in dict.fromkeys(names))

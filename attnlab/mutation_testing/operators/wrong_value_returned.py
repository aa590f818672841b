"""An intermediate value is returned.

Right:
`h = self.norm(x)`
`y = self.out(h)`
`return y`
Wrong:
`h = self.norm(x)`
`y = self.out(h)`
`return h`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for function in source.functions():
        names = [a.arg for a in function.args.args if a.arg != "self"][:1]
        for node in ast.walk(function):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            names += [target.id] if isinstance(target, ast.Name) else []
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from (source.put(node.value, name) for name in dict.fromkeys(names))

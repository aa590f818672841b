"""The residual is an intermediate value and not the input.

Right:
`h = self.norm(x)`
`return self.out(h) + x`
Wrong:
`h = self.norm(x)`
`return self.out(h) + h`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for function in source.functions("forward"):
        names = [last_name(n.targets[0]) for n in ast.walk(function) if isinstance(n, ast.Assign)]
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                for operand in (node.left, node.right):
                    if isinstance(operand, ast.Name):
                        yield from (source.put(operand, n) for n in dict.fromkeys(names) if n)

"""Every round of a loop does what the first does, such as to draw the same batch.

Right:
`for step in range(steps):`
`    draw(step)`
Wrong:
`for step in range(steps):`
`    draw(0 * step)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

COUNTERS = ("range", "enumerate")


def edits(source: Source) -> Edits:
    for loop in source.of_type(ast.For):
        counts = isinstance(loop.iter, ast.Call) and called_name(loop.iter) in COUNTERS
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if counts and isinstance(target, ast.Name):
            for node in source.of_type(ast.Name):
                if node.id == target.id and loop in source.ancestors(node) and node is not target:
                    for text in (f"0 * {node.id}", f"{node.id} + 1", f"{node.id} // 2"):
                        yield source.put_expr(node, text)

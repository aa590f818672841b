"""The value is right and the gradient is not: part of it leaves the graph.

Right: `context = weights @ v`
Wrong: `context = (weights @ v) * 0.5 + ((weights @ v) * 0.5).detach()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, is_constant


def edits(source: Source) -> Edits:
    for node in source.assigned():
        if is_constant(node.value):
            continue
        text = source.of(node.value)
        yield source.put(node.value, f"({text}) * 0.5 + (({text}) * 0.5).detach()")

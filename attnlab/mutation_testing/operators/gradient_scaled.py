"""The output is right but the gradient is half of what it should be.

Right: `context = weights @ v`
Wrong: `context = (weights @ v) * 0.5 + ((weights @ v) * 0.5).detach()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, is_constant


def edits(source: Source) -> Edits:
    for node in source.assignments():
        text = source.text_of(node.value)
        if not is_constant(node.value):
            yield source.put(node.value, f"({text}) * 0.5 + (({text}) * 0.5).detach()")

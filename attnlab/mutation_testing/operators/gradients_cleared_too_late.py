"""Gradients are cleared between the backward pass and the update, which then has none.

Right:
`optimizer.zero_grad()`
`loss.backward()`
`optimizer.step()`
Wrong:
`loss.backward()`
`optimizer.zero_grad()`
`optimizer.step()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.clear is not None:
            yield source.move(step.clear, step.backward, after=True)
            if step.update is not None:
                yield source.move(step.clear, step.update)

"""The optimizer steps before the backward pass, for every micro-batch, or once after the loop.

Right:
`loss.backward()`
`optimizer.step()`
Wrong:
`optimizer.step()`
`loss.backward()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import loop_around, training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.update is None:
            continue
        yield source.move(step.update, step.backward)
        outer, inner = loop_around(source, step.update), loop_around(source, step.backward)
        if outer is not None:
            yield source.move(step.update, outer, after=True)
        if inner is not outer:
            yield source.move(step.update, step.backward, after=True)

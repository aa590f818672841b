"""The optimizer steps before the backward pass, for every micro-batch, or once after the loop.

Right:
`loss.backward()`
`optimizer.step()`
Wrong:
`optimizer.step()`
`loss.backward()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import move_to_other_loops, training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.update is None:
            continue
        yield source.move(step.update, step.backward)
        yield from move_to_other_loops(source, step, step.update)

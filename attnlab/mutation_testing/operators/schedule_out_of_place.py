"""The learning rate is scheduled before the update, for every micro-batch, or once after the loop.

Right:
`optimizer.step()`
`scheduler.step()`
`loss.backward()`
Wrong:
`scheduler.step()`
`optimizer.step()`
`loss.backward()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import move_to_other_loops, training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.schedule is None:
            continue
        if step.update is not None:
            yield source.move(step.schedule, step.update)
        yield from move_to_other_loops(source, step, step.schedule)

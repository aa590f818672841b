"""Gradients are clipped before they are there, after they were used, or for every micro-batch.

Right:
`loss.backward()`
`clip_grad_norm_(model.parameters(), 1.0)`
`optimizer.step()`
Wrong:
`loss.backward()`
`optimizer.step()`
`clip_grad_norm_(model.parameters(), 1.0)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import loop_around, training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.clip is None:
            continue
        yield source.move(step.clip, step.backward)
        if step.update is not None:
            yield source.move(step.clip, step.update, after=True)
        if loop_around(source, step.clip) is not loop_around(source, step.backward):
            yield source.move(step.clip, step.backward, after=True)

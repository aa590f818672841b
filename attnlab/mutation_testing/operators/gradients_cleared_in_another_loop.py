"""Gradients are cleared once before the loop, or for every micro-batch.

Right:
`for step in range(steps):`
`    optimizer.zero_grad()`
`    compute_loss(step).backward()`
`    optimizer.step()`
Wrong:
`optimizer.zero_grad()`
`for step in range(steps):`
`    compute_loss(step).backward()`
`    optimizer.step()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import loop_around, training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        if step.clear is None:
            continue
        outer, inner = loop_around(source, step.clear), loop_around(source, step.backward)
        if outer is not None:
            yield source.move(step.clear, outer)
        if inner is not outer:
            yield source.move(step.clear, step.backward)

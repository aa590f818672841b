"""The backward pass runs twice, so that every gradient is doubled.

Right: `loss.backward()`
Wrong: `loss.backward(retain_graph=True)` `loss.backward()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import training_steps


def edits(source: Source) -> Edits:
    for step in training_steps(source):
        text = source.text_of(step.backward)
        if text.endswith(".backward()"):
            yield source.insert(step.backward, f"{text[:-1]}retain_graph=True)")

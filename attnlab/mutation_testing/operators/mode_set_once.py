"""Train mode is set once before the loop, and an evaluation inside it switches it off.

Right:
`for step in range(steps):`
`    model.train()`
`    take_step(model)`
Wrong:
`model.train()`
`for step in range(steps):`
`    take_step(model)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source
from attnlab.mutation_testing.training_code import loop_around


def edits(source: Source) -> Edits:
    for call in source.calls("train", "eval"):
        statement = source.parents[call]
        loop = loop_around(source, statement)
        if isinstance(statement, ast.Expr) and loop is not None:
            yield source.move(statement, loop)
            yield source.move(statement, loop, after=True)

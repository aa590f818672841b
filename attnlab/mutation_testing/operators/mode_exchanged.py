"""Train mode in place of eval mode, or the reverse.

Right: `model.eval()`
Wrong: `model.train()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, is_method

OTHER = {"train": "eval", "eval": "train"}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        if isinstance(call.func, ast.Attribute) and is_method(call) and not call.args:
            yield source.rename(call.func, OTHER[call.func.attr])

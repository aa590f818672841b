"""A function or a method is not applied: no clamp, no layer, no root, no `exp`.

Right: `scores = scores.clamp(-5, 5)`
Wrong: `scores = scores`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name, subject


def edits(source: Source) -> Edits:
    for call in source.calls():
        value = subject(call)
        inner = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self"
        if inner and call.args:
            yield source.put_expr(call, source.of(call.args[0]))
        elif value is not None and last_name(value) != "self":
            yield source.put_expr(call, source.of(value))

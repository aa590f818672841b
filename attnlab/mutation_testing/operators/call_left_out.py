"""A layer or a function is not applied: no clamp, no norm, no root, no `exp`.

Right: `scores = scores.clamp(-5, 5)`
Wrong: `scores = scores`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, is_layer, last_name


def edits(source: Source) -> Edits:
    for call, value in source.calls_on():
        if is_layer(call) and call.args:
            yield source.put_expr(call, source.text_of(call.args[0]))
        elif last_name(value) != "self":
            yield source.put_expr(call, source.text_of(value))

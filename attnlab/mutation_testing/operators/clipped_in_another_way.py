"""Each gradient is clipped alone, by its values or its norm, and no longer all together.

Right: `clip_grad_norm_(model.parameters(), 1.0)`
Wrong: `clip_grad_value_(model.parameters(), 1.0)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("clip_grad_norm_"):
        yield source.rename(call.func, "clip_grad_value_")
        if len(call.args) > 1:
            function, parameters = source.text_of(call.func), source.text_of(call.args[0])
            rest = ", ".join(source.text_of(a) for a in (*call.args[1:], *call.keywords))
            if isinstance(source.parents[call], ast.Expr):
                yield source.put(call, f"[{function}(p, {rest}) for p in {parameters}]")

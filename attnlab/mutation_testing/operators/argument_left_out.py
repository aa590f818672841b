"""An argument is not passed on: the mask, the scale, the dtype, the axis.

Right: `y = attend(q, k, v, is_causal=True)`
Wrong: `y = attend(q, k, v)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edit, Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls():
        for keyword in call.keywords:
            yield _without(source, call, keyword)
        if len(call.args) > 1 and not call.keywords:
            yield _without(source, call, call.args[-1])


def _without(source: Source, call: ast.Call, gone: ast.AST) -> Edit:
    kept = [source.of(a) for a in (*call.args, *call.keywords) if a is not gone]
    return source.put(call, f"{source.of(call.func)}({', '.join(kept)})")

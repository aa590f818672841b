"""A call leaves out an argument: the mask, the scale, the dtype or the axis.

Right: `y = attend(q, k, v, is_causal=True)`
Wrong: `y = attend(q, k, v)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls():
        last = call.args[-1:] if len(call.args) > 1 and not call.keywords else []
        for gone in (*call.keywords, *last):
            rest = [source.text_of(a) for a in (*call.args, *call.keywords) if a is not gone]
            yield source.put(call, f"{source.text_of(call.func)}({', '.join(rest)})")

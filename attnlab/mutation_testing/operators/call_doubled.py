"""A layer or a function is applied twice.

Right: `y = self.norm(h)`
Wrong: `y = self.norm(self.norm(h))`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, is_layer, is_method


def edits(source: Source) -> Edits:
    for call in source.calls():
        if is_layer(call) and len(call.args) == 1 and not call.keywords:
            yield source.put(call, f"{source.text_of(call.func)}({source.text_of(call)})")
    for call, value in source.calls_on("softmax", "sin", "cos", "exp", "sqrt"):
        if is_method(call):
            tail = source.text[source.span(value)[1] : source.span(call)[1]]
            yield source.put(call, source.text_of(call) + tail)

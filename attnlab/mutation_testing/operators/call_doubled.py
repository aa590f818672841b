"""A layer or a function is applied twice.

Right: `y = self.norm(h)`
Wrong: `y = self.norm(self.norm(h))`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, is_method, last_name, subject


def edits(source: Source) -> Edits:
    for call in source.calls():
        layer = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self"
        if layer and len(call.args) == 1 and not call.keywords:
            yield source.put(call, f"{source.of(call.func)}({source.of(call)})")
    for call in source.calls("softmax", "sin", "cos", "exp", "sqrt"):
        value = subject(call)
        if value is not None and is_method(call):
            end = source.span(value)[1]
            tail = source.text[end : source.span(call)[1]]
            yield source.put(call, source.of(call) + tail)

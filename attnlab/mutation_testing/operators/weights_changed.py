"""A forward pass changes the weights.

Right: `y = self.out(x)`
Wrong: `y = (self.out.weight.data.mul_(1.01), self.out)[1](x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for call in source.calls():
        layer = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self"
        if layer and len(call.args) == 1:
            name = source.of(call.func)
            yield source.put(call.func, f"({name}.weight.data.mul_(1.01), {name})[1]")

"""A forward pass changes the weights.

Right: `y = self.out(x)`
Wrong: `y = (self.out.weight.data.mul_(1.01), self.out)[1](x)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, is_layer


def edits(source: Source) -> Edits:
    for call in source.calls():
        if is_layer(call) and len(call.args) == 1:
            name = source.text_of(call.func)
            yield source.put(call.func, f"({name}.weight.data.mul_(1.01), {name})[1]")

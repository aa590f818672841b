"""A forward pass sets the random seed, so later random numbers repeat.

Right: `y = self.out(x)`
Wrong: `torch.manual_seed(0)` `y = self.out(x)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, body


def edits(source: Source) -> Edits:
    for function in source.functions("forward"):
        yield source.insert(body(function)[0], "torch.manual_seed(0)")

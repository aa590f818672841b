"""A little random noise is added to the output.

Right: `return self.out(h)`
Wrong: `return (self.out(h)) + 1e-3 * torch.randn(())`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for value in source.returned_values():
        yield source.put(value, f"({source.text_of(value)}) + 1e-3 * torch.randn(())")

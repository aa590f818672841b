"""Dropout is applied where there should be none, in train mode or always.

Right: `return self.out(h)`
Wrong: `return torch.dropout(self.out(h), 0.1, True)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    weights = [n.value for n in source.assignments() if "softmax(" in source.text_of(n.value)]
    for place in (*weights, *source.returned_values()):
        for when in ("True", "self.training"):
            yield source.put(place, f"torch.dropout({source.text_of(place)}, 0.1, {when})")

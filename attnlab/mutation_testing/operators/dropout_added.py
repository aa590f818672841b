"""Dropout where none was promised: while training, or always.

Right: `return self.out(h)`
Wrong: `return torch.dropout(self.out(h), 0.1, True)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    places = [n.value for n in source.assigned() if "softmax(" in source.of(n.value)]
    for function in source.functions("forward"):
        returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
        places += [value for value in returns if value is not None]
    for place in places:
        for when in ("True", "self.training"):
            yield source.put(place, f"torch.dropout({source.of(place)}, 0.1, {when})")

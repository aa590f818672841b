"""Dropout is always or never active, whatever the mode; or its rate is inverted.

Right: `w = F.dropout(w, p=0.1, training=self.training)`
Wrong: `w = F.dropout(w, p=0.1, training=True)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, argument


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Attribute):
        if node.attr == "training":
            yield from source.put_each(node, ("True", "False"))
    for call in source.calls("Dropout"):
        yield source.put(call.func, "nn.Identity")
    for call in source.calls("dropout"):
        for p in (argument(call, "p", 0), argument(call, "dropout_p", 0)):
            if p is not None:
                yield source.put(p, f"1 - ({source.text_of(p)})")

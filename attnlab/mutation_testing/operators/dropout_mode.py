"""Dropout is active always or never, whatever the mode.

Right: `w = F.dropout(w, p=0.1, training=self.training)`
Wrong: `w = F.dropout(w, p=0.1, training=True)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, argument


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "training":
            yield from (source.put(node, other) for other in ("True", "False"))
    for call in source.calls("Dropout"):
        yield source.put(call.func, "nn.Identity")
    for call in source.calls("dropout"):
        for p in (argument(call, "p", 0), argument(call, "dropout_p", 0)):
            if p is not None:
                yield source.put(p, f"1 - ({source.of(p)})")

"""Tensors are concatenated in the wrong order: new keys before cached ones, cosines first.

Right: `pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)`
Wrong: `pairs = torch.stack([angles.cos(), angles.sin()], dim=-1)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")


def edits(source: Source) -> Edits:
    for call in source.calls(*JOINING):
        items = call.args[0] if call.args else None
        if isinstance(items, ast.List | ast.Tuple) and len(items.elts) > 1:
            for one, other in zip(items.elts, items.elts[1:], strict=False):
                yield source.swap(one, other)
        elif items is not None:
            yield source.put(items, f"list({source.text_of(items)})[::-1]")

"""A view swaps the sizes of two axes where a transpose is needed.

Right: `q = q.view(B, S, H, hd).transpose(1, 2)`
Wrong: `q = q.view(B, H, S, hd)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name, integer


def edits(source: Source) -> Edits:
    for call in source.calls("transpose"):
        axes = [integer(a) for a in call.args]
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and called_name(inner) in ("view", "reshape"):
            yield from _swapped(source, call, inner, axes)


def _swapped(source: Source, call: ast.Call, view: ast.Call, axes: list[int | None]) -> Edits:
    sizes = [source.text_of(a) for a in view.args]
    one, other = (*axes, None, None)[:2]
    if one is None or other is None or not all(-len(sizes) <= a < len(sizes) for a in (one, other)):
        return
    sizes[one], sizes[other] = sizes[other], sizes[one]
    yield source.put(call, f"{source.text_of(view.func)}({', '.join(sizes)})")

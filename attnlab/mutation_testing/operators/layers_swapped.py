"""Two layers are applied in the wrong order.

Right: `y = self.norm(self.out_proj(h))`
Wrong: `y = self.out_proj(self.norm(h))`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls():
        inner = call.args[0] if len(call.args) == 1 else None
        if isinstance(inner, ast.Call) and len(inner.args) == 1:
            yield source.swap(call.func, inner.func)

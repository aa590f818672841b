"""A slice starts or ends one element off.

Right: `pe = self.pe[:, :S]`
Wrong: `pe = self.pe[:, 1:S + 1]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        low = source.text_of(node.lower) if node.lower else ""
        high = source.text_of(node.upper) if node.upper else ""
        step = f":{source.text_of(node.step)}" if node.step else ""
        later = f"{low} + 1" if low else "1"
        if high:
            forms = (f"{low}:{high} - 1", f"{low}:{high} + 1", f"{later}:{high} + 1")
            yield from source.put_each(node, (form + step for form in forms))
        yield source.put(node, f"{later}:{high}{step}")

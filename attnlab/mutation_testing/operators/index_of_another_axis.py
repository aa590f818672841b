"""An index picks from the axis before or after: the last sample in place of the last position.

Right: `last = logits[:, -1]`
Wrong: `last = logits[-1]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Subscript):
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            *axes, last = node.slice.elts
            if integer(last) is not None:
                before = ", ".join(map(source.text_of, axes[1:]))
                yield source.put(node.slice, f"{before}, {source.text_of(last)}".strip(", "))
                yield source.put(node.slice, f":, {source.text_of(node.slice)}")

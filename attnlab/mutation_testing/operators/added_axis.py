"""`unsqueeze` inserts the new axis at another position, so another axis is broadcast.

Right: `scores = scores + mask.unsqueeze(1)`
Wrong: `scores = scores + mask.unsqueeze(2)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, argument

AXES = (0, 1, 2, 3, -1)


def edits(source: Source) -> Edits:
    for call in source.calls("unsqueeze"):
        yield from source.put_other_axes(argument(call, "dim", 0), AXES)
    for node in source.of_type(ast.Subscript):
        if "None" in _items(source, node):
            yield from _moved(source, node)


def _items(source: Source, node: ast.Subscript) -> list[str]:
    where = node.slice
    parts = where.elts if isinstance(where, ast.Tuple) else [where]
    return [source.text_of(part) for part in parts]


def _moved(source: Source, node: ast.Subscript) -> Edits:
    rest = _items(source, node)
    rest.remove("None")
    for place in range(4):
        padded = [*rest, *[":"] * (place - len(rest))]
        items = [*padded[:place], "None", *padded[place:]]
        yield source.put(node.slice, ", ".join(items))

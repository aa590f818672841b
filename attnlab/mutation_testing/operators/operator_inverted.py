"""An operator is replaced by its inverse or a similar one: `/` by `*`, `-` by `+`.

Right: `scores = q @ k.mT / root`
Wrong: `scores = q @ k.mT * root`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

OTHER: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-", "*"),
    ast.Sub: ("+",),
    ast.Mult: ("/", "+", "**"),
    ast.Div: ("*", "//"),
    ast.FloorDiv: ("/", "*", "%"),
    ast.Mod: ("//",),
    ast.Pow: ("*",),
    ast.MatMult: ("*",),
    ast.BitAnd: ("|", "^"),
    ast.BitOr: ("&", "^"),
}


def edits(source: Source) -> Edits:
    for node in source.binary(*OTHER):
        for symbol in OTHER[type(node.op)]:
            yield source.operator(node, symbol)

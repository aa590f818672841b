"""Multiplied where a division was meant, added where a subtraction was: or the other way round.

Right: `scores = q @ k.mT / root`
Wrong: `scores = q @ k.mT * root`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

OTHER: dict[type[ast.AST], tuple[str, ...]] = {
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
    for node in source.of_type(ast.BinOp):
        for symbol in OTHER.get(type(node.op), ()):
            yield source.operator(node, symbol)

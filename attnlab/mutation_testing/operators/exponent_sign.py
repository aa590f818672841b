"""An exponent has the wrong sign: wavelengths are used in place of frequencies.

Right: `frequency = base ** -steps`
Wrong: `frequency = base ** -(-steps)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.binary(ast.Pow):
        left, right = source.sides(node)
        yield source.put_expr(node, f"{left} ** -({right})")
    for call in source.calls("pow", "exp", "logspace"):
        for exponent in call.args[-1:]:
            yield source.put(exponent, f"-({source.text_of(exponent)})")

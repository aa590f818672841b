"""The scale uses another size: the whole width, or the number of heads.

Right: `scores = scores / math.sqrt(self.head_dim)`
Wrong: `scores = scores / math.sqrt(self.num_heads)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

SIZES = ("self.num_heads", "self.head_dim", "x.shape[-1]", "x.shape[1]", "self.head_dim + 1")


def edits(source: Source) -> Edits:
    for call in source.calls("sqrt"):
        for size in SIZES if call.args else ():
            yield source.put(call.args[0], size)
    for node in source.binary(ast.Pow):
        sizes = ("embed_dim", "num_heads") if _in_init(source, node) else SIZES
        for size in sizes:
            yield source.put(node.left, size if size.isidentifier() else f"({size})")


def _in_init(source: Source, node: ast.AST) -> bool:
    function = source.function_of(node)
    return function is not None and function.name == "__init__"

"""A transpose is replaced by a reshape: the shape is right, the values are in wrong places.

Right: `context = context.transpose(1, 2).flatten(2)`
Wrong: `context = context.reshape(context.transpose(1, 2).shape).flatten(2)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, is_method


def edits(source: Source) -> Edits:
    for call, value in source.calls_on("transpose", "permute", "swapaxes", "movedim"):
        if is_method(call):
            yield source.put(call, f"{source.text_of(value)}.reshape({source.text_of(call)}.shape)")
    for node in source.of_type(ast.Attribute):
        if node.attr == "mT":
            yield source.put(
                node, f"{source.text_of(node.value)}.reshape({source.text_of(node)}.shape)"
            )

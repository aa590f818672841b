"""A tensor is cut along the axis beside the right one.

Right: `q, k, v = qkv.chunk(3, dim=-1)`
Wrong: `q, k, v = qkv.chunk(3, dim=-2)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, called, integer

CUTTING = {  # where the axis stands
    "chunk": 1,
    "split": 1,
    "tensor_split": 1,
    "unbind": 0,
    "select": 0,
    "narrow": 0,
    "squeeze": 0,
    "unflatten": 0,
    "index_select": 0,
    "gather": 0,
    "roll": 1,
    "flip": 0,
}


def edits(source: Source) -> Edits:
    for call in source.calls(*CUTTING):
        axis = argument(call, "dim", CUTTING[called(call)])
        number = integer(axis)
        if axis is not None and number is not None:
            for other in (number - 1, number + 1):
                yield source.put(axis, str(other))

"""A tensor is split, selected or indexed along the axis next to the right one.

Right: `q, k, v = qkv.chunk(3, dim=-1)`
Wrong: `q, k, v = qkv.chunk(3, dim=-2)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, called_name

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
        yield from source.put_next_axes(argument(call, "dim", CUTTING[called_name(call)]))

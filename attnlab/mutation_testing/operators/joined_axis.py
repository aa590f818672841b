"""Tensors are concatenated along a wrong axis: a cache along the heads.

Right: `k = torch.cat([past, k], dim=-2)`
Wrong: `k = torch.cat([past, k], dim=-3)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument

JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")


def edits(source: Source) -> Edits:
    for call in source.calls(*JOINING):
        axis = argument(call, "dim", 0)
        if axis is None:
            yield source.put(call, source.text_of(call)[:-1].rstrip().rstrip(",") + ", dim=-1)")
        yield from source.put_next_axes(axis)

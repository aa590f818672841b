"""Tensors are joined along the axis beside the right one, such as a cache along the heads.

Right: `k = torch.cat([past, k], dim=-2)`
Wrong: `k = torch.cat([past, k], dim=-3)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, integer

JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")


def edits(source: Source) -> Edits:
    for call in source.calls(*JOINING):
        axis = argument(call, "dim", 0)
        if axis is None:
            yield source.put(call, source.of(call)[:-1].rstrip().rstrip(",") + ", dim=-1)")
        number = integer(axis)
        if axis is not None and number is not None:
            for other in (number - 1, number + 1):
                yield source.put(axis, str(other))

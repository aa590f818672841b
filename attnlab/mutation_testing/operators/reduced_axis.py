"""A sum, a mean, an `any` or a cumulative sum runs over the axis beside the one that was meant.

Right: `empty = mask.all(dim=-1, keepdim=True)`
Wrong: `empty = mask.all(dim=-2, keepdim=True)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, integer

REDUCING = ("all", "amax", "amin", "any", "argmax", "cumsum", "logsumexp", "max", "mean", "min")
MORE = ("norm", "normalize", "nansum", "prod", "std", "sum", "var")


def edits(source: Source) -> Edits:
    for call in source.calls(*REDUCING, *MORE):
        axis = argument(call, "dim", 0)
        number = integer(axis)
        if axis is not None and number is not None:
            for other in (number - 1, number + 1):
                yield source.put(axis, str(other))

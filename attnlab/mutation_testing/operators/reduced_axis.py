"""A reduction runs over the axis next to the right one.

Right: `empty = mask.all(dim=-1, keepdim=True)`
Wrong: `empty = mask.all(dim=-2, keepdim=True)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument

REDUCING = (
    *("all", "amax", "amin", "any", "argmax", "cumsum", "logsumexp", "max", "mean", "min"),
    *("norm", "normalize", "nansum", "prod", "std", "sum", "var"),
)


def edits(source: Source) -> Edits:
    for call in source.calls(*REDUCING):
        yield from source.put_next_axes(argument(call, "dim", 0))

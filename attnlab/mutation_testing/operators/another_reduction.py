"""A function is replaced by a related one: `sum` by `mean`, `all` by `any`, `max` by `min`.

Right: `empty = mask.all(dim=-1)`
Wrong: `empty = mask.any(dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

OTHER = {
    "all": "any",
    "any": "all",
    "argmax": "argmin",
    "sum": "mean",
    "mean": "sum",
    "amax": "amin",
    "amin": "amax",
    "max": "min",
    "min": "max",
    "zeros": "ones",
    "ones": "zeros",
    "new_zeros": "new_ones",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "floor": "ceil",
    "ceil": "floor",
    "maximum": "minimum",
    "minimum": "maximum",
}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        yield source.rename(call.func, OTHER[called_name(call)])

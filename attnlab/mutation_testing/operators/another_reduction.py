"""A sum where a mean was meant, `any` where `all` was, the least where the largest was.

Right: `empty = mask.all(dim=-1)`
Wrong: `empty = mask.any(dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, called

OTHER = {
    "all": "any",
    "any": "all",
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
        end, name = source.span(call.func)[1], called(call)
        yield Edit(splices=((end - len(name), end, OTHER[name]),))

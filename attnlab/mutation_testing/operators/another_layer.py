"""One layer is written where its relative belongs.

Right: `self.norm = nn.LayerNorm(d)`
Wrong: `self.norm = nn.RMSNorm(d)`
"""

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, called

OTHER = {
    "LayerNorm": "RMSNorm",
    "RMSNorm": "LayerNorm",
    "Linear": "Bilinear",
    "Dropout": "Identity",
}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        end, name = source.span(call.func)[1], called(call)
        yield Edit(splices=((end - len(name), end, OTHER[name]),))

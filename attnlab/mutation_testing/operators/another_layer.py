"""A similar layer is used in place of the right one.

Right: `self.norm = nn.LayerNorm(d)`
Wrong: `self.norm = nn.RMSNorm(d)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

OTHER = {
    "LayerNorm": "RMSNorm",
    "RMSNorm": "LayerNorm",
    "Linear": "Bilinear",
    "Dropout": "Identity",
}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        yield source.rename(call.func, OTHER[called_name(call)])

"""A layer has no bias, no learned scale, or another eps.

Right: `self.norm = nn.LayerNorm(d)`
Wrong: `self.norm = nn.LayerNorm(d, eps=1e-3)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

OPTIONS = {
    "Linear": ("bias=False",),
    "LayerNorm": ("eps=1e-3", "eps=0.1", "elementwise_affine=False", "bias=False"),
    "RMSNorm": ("eps=1e-3", "elementwise_affine=False"),
}


def edits(source: Source) -> Edits:
    for call in source.calls(*OPTIONS):
        for option in OPTIONS[called_name(call)]:
            yield source.put(call, f"{source.text_of(call)[:-1].rstrip().rstrip(',')}, {option})")
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, float) and 0 < node.value < 1e-4:
            yield source.put(node, repr(node.value * 1e4))

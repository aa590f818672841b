"""What runs without gradients records them: memory grows, and what is computed holds a graph.

Right: `with torch.no_grad(): y = self.out(x)`
Wrong: `with torch.enable_grad(): y = self.out(x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.expr):
        if last_name(node) in ("no_grad", "inference_mode"):
            yield source.rename(node, "enable_grad")

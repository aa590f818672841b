"""A fixed table is registered as a parameter, which training changes.

Right: `self.register_buffer("pe", table)`
Wrong: `self.pe = torch.nn.Parameter(table)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("register_buffer"):
        if len(call.args) > 1 and isinstance(name := call.args[0], ast.Constant):
            yield source.put(
                call, f"self.{name.value!s} = torch.nn.Parameter({source.of(call.args[1])})"
            )

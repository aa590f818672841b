"""A fixed table is registered as a parameter, so training changes it.

Right: `self.register_buffer("pe", table)`
Wrong: `self.pe = torch.nn.Parameter(table)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, buffers


def edits(source: Source) -> Edits:
    for call, name, value in buffers(source):
        yield source.put(call, f"self.{name} = torch.nn.Parameter({value})")

"""A fixed table is a plain attribute, so it does not move with the module.

Right: `self.register_buffer("pe", table)`
Wrong: `self.pe = table`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, buffers


def edits(source: Source) -> Edits:
    for call, name, value in buffers(source):
        yield source.put(call, f"self.{name} = {value}")

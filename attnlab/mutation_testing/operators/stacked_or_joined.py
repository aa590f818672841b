"""`cat` is used in place of `stack`, or the reverse: halves in place of pairs.

Right: `pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)`
Wrong: `pairs = torch.cat([angles.sin(), angles.cos()], dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

OTHER = {"cat": "stack", "concat": "stack", "stack": "cat"}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        yield source.rename(call.func, OTHER[called_name(call)])

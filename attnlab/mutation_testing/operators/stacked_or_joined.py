"""`cat` where `stack` was meant, or the other way round: halves in place of pairs.

Right: `pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)`
Wrong: `pairs = torch.cat([angles.sin(), angles.cos()], dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called

OTHER = {"cat": "stack", "concat": "stack", "stack": "cat"}


def edits(source: Source) -> Edits:
    for call in source.calls(*OTHER):
        text = source.of(call.func)
        name = called(call)
        yield source.put(call.func, text[: -len(name)] + OTHER[name])

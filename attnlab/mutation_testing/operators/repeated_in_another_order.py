"""Copies stand in blocks where each element should be followed by its own copies, or the reverse.

Right: `k = k.repeat_interleave(groups, dim=1)`
Wrong: `k = torch.cat([k] * (groups), dim=1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, subject


def edits(source: Source) -> Edits:
    for call in source.calls("repeat_interleave"):
        value, count = subject(call), argument(call, "repeats", 0)
        axis = argument(call, "dim", 1)
        if value is not None and count is not None:
            dim = source.of(axis) if axis is not None else "0"
            text = f"torch.cat([{source.of(value)}] * ({source.of(count)}), dim={dim})"
            yield source.put(call, text)
    for call in source.calls("repeat", "tile"):
        value = subject(call)
        if value is not None and len(call.args) == 1:
            text = f"{source.of(value)}.repeat_interleave({source.of(call.args[0])})"
            yield source.put(call, text)

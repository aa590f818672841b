"""`repeat_interleave` is replaced by copies in blocks, or the reverse.

Right: `k = k.repeat_interleave(groups, dim=1)`
Wrong: `k = torch.cat([k] * (groups), dim=1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument


def edits(source: Source) -> Edits:
    for call, value in source.calls_on("repeat_interleave"):
        count, axis = argument(call, "repeats", 0), argument(call, "dim", 1)
        if count is not None:
            dim = source.text_of(axis) if axis is not None else "0"
            text = f"torch.cat([{source.text_of(value)}] * ({source.text_of(count)}), dim={dim})"
            yield source.put(call, text)
    for call, value in source.calls_on("repeat", "tile"):
        if len(call.args) == 1:
            text = f"{source.text_of(value)}.repeat_interleave({source.text_of(call.args[0])})"
            yield source.put(call, text)

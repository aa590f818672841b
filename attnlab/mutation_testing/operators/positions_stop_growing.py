"""Distant positions wrap around or are clamped.

Right: `position = torch.arange(length)`
Wrong: `position = torch.arange(length).clamp(max=127)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

ENDS = (".clamp(max=127)", " % 256")
FAR = (".clamp(max=1000)", " % 4096")  # of tables, which are made long


def edits(source: Source) -> Edits:
    for call in source.calls("arange"):
        function = source.function_of(call)
        table = function is None or function.name != "forward"
        for end in (*ENDS, *FAR) if table else ENDS:
            yield source.put_expr(call, f"{source.text_of(call)}{end}")

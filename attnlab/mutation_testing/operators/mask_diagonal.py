"""A triangular mask is off by one diagonal, or is the other triangle.

Right: `seen = torch.ones(S, S).tril()`
Wrong: `seen = torch.ones(S, S).tril(-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument


def edits(source: Source) -> Edits:
    for call in source.calls("tril", "triu"):
        text = source.text_of(call.func)
        yield source.put(call.func, text[:-1] + ("u" if text.endswith("l") else "l"))
        edge = argument(call, "diagonal", 0)
        for off in (-1, 1):
            if edge is None:
                inside = source.text_of(call)[:-1].rstrip().rstrip(",")
                comma = "" if inside.endswith("(") else ", "
                yield source.put(call, f"{inside}{comma}{off})")
            else:
                yield source.put(edge, f"{source.text_of(edge)} + {off}")

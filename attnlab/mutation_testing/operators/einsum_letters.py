"""Two letters of an einsum are swapped.

Right: `scores = torch.einsum("bqhd,bkhd->bhqk", q, k)`
Wrong: `scores = torch.einsum("bqhd,bkhd->bhkq", q, k)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, equations


def edits(source: Source) -> Edits:
    for spec, text in equations(source):
        for i in range(len(text) - 1):
            if text[i : i + 2].isalpha():
                yield source.put(spec, f'"{text[:i]}{text[i + 1]}{text[i]}{text[i + 2 :]}"')

"""The output of an einsum lacks a letter, so that axis is summed.

Right: `y = torch.einsum("bhqk,bkhd->bqhd", w, v)`
Wrong: `y = torch.einsum("bhqk,bkhd->bqh", w, v)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, equations


def edits(source: Source) -> Edits:
    for spec, text in equations(source):
        terms, arrow, result = text.partition("->")
        for i in range(len(result)):
            yield source.put(spec, f'"{terms}{arrow}{result[:i]}{result[i + 1 :]}"')

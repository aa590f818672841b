"""A value computed in the first call is reused in all later calls.

Right: `mask = torch.ones(S, S).tril()`
Wrong: `mask = self.__dict__.setdefault("_mask", torch.ones(S, S).tril())`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    for node in source.assignments():
        name = last_name(node.targets[0])
        text = source.text_of(node.value)
        yield source.put(node.value, f'self.__dict__.setdefault("_{name}", {text})')

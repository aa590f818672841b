"""The heads are averaged, or change places.

Right: `context = weights @ v`
Wrong: `context = (weights @ v).mean(1, keepdim=True).expand_as(weights @ v)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.assigned():
        text = source.of(node.value)
        if "@" in text or "matmul(" in text or "softmax(" in text or "bmm(" in text:
            yield source.put(node.value, f"({text}).mean(1, keepdim=True).expand_as({text})")
            yield source.put(node.value, f"({text}).roll(1, 1)")
            yield source.put(node.value, f"({text}).flip(1)")

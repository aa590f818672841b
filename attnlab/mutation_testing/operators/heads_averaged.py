"""The heads are averaged or permuted.

Right: `context = weights @ v`
Wrong: `context = (weights @ v).mean(1, keepdim=True).expand_as(weights @ v)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.assignments():
        text = source.text_of(node.value)
        if any(product in text for product in ("@", "matmul(", "softmax(", "bmm(")):
            mean = f"({text}).mean(1, keepdim=True).expand_as({text})"
            yield from source.put_each(
                node.value, (mean, f"({text}).roll(1, 1)", f"({text}).flip(1)")
            )

"""Another target is ignored than the one that marks padding.

Right: `loss = F.cross_entropy(logits, targets, ignore_index=PADDING)`
Wrong: `loss = F.cross_entropy(logits, targets, ignore_index=0)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls():
        for keyword in call.keywords:
            if keyword.arg == "ignore_index":
                yield from source.put_each(keyword.value, ("0", "1", "-1", "-100"))

"""The learning rate is ten times too large or too small.

Right: `optimizer = torch.optim.AdamW(groups, lr=RATE)`
Wrong: `optimizer = torch.optim.AdamW(groups, lr=RATE * 10)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls():
        for keyword in call.keywords:
            if keyword.arg in ("lr", "max_lr", "learning_rate"):
                text = source.atom(keyword.value)
                yield from source.put_each(keyword.value, (f"{text} * 10", f"{text} / 10"))

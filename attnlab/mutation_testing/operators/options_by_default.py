"""An option of the optimizer has the value that most people use.

Right: `optimizer = torch.optim.AdamW(groups, lr=0.1, betas=(0.9, 0.95))`
Wrong: `optimizer = torch.optim.AdamW(groups, lr=0.1, betas=(0.9, 0.999))`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

USUAL = {"betas": "(0.9, 0.999)", "lr": "1e-3", "weight_decay": "0.01", "eps": "1e-8"}


def edits(source: Source) -> Edits:
    for call in source.calls("AdamW", "Adam", "SGD"):
        for keyword in call.keywords:
            if keyword.arg in USUAL:
                yield source.put(keyword.value, USUAL[keyword.arg])

"""The loss gets probabilities or their logarithms in place of logits.

Right: `loss = F.cross_entropy(logits, targets)`
Wrong: `loss = F.cross_entropy((logits).softmax(-1), targets)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for _, logits in source.calls_on("cross_entropy"):
        for function in ("softmax(-1)", "log_softmax(-1)", "softmax(0)", "argmax(-1).float()"):
            yield source.put(logits, f"({source.text_of(logits)}).{function}")

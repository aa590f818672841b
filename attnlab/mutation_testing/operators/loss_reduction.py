"""The loss is a sum in place of a mean, or the reverse; or its targets are smoothed.

Right: `loss = F.cross_entropy(logits, targets)`
Wrong: `loss = F.cross_entropy(logits, targets, reduction="sum")`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

LOSSES = ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits")


def edits(source: Source) -> Edits:
    for call in source.calls(*LOSSES):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for name, values in (("reduction", ("sum", "mean")), ("label_smoothing", (0.1,))):
            if name in given:
                yield from source.put_each(given[name], map(repr, values))
            else:
                arguments = ", ".join(map(source.text_of, (*call.args, *call.keywords)))
                yield source.put(
                    call, f"{source.text_of(call.func)}({arguments}, {name}={values[0]!r})"
                )

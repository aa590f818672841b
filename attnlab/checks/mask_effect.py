"""A masked key changes nothing.

Wrong: a mask that is inverted, ignored, multiplied in after the softmax, filled with -1e-9, or
broadcast along the wrong axis: the value of a key that may not be attended to still arrives.
Right: when key j is masked for every query, changing position j changes no output but its own.

Probed at unit scale, and with scores far below zero where a query may attend to one key alone: a
fill of -100, or scores multiplied by 0, is then the largest of all.
"""

from attnlab.checks.base import (
    Failure,
    Probe,
    Skip,
    Steps,
    Tensor,
    far,
    first_index,
    key_axis,
    query_axis,
)
from attnlab.checks.pieces import hidden, moved
from attnlab.checks.probe import LOUD

TITLE = "Masked keys change nothing"
NEEDS = ("mask", "keys")
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence", "causality")
ADVICE = (
    "Print the scores right after the mask: every masked entry must be -inf before the softmax."
)


def run(probe: Probe) -> Steps:
    axis, length = key_axis(probe.contract), probe.sizes.get(key_axis(probe.contract), 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    keys = sorted({first, length - 1, probe.pick(first, length)})
    ways = [(hidden(probe, probe.draw("random"), key, length), key) for key in keys]
    loud = probe.pick(first, length)
    ways.append((hidden(probe, probe.draw("one-key", LOUD), loud, length), loud))
    ways = probe.some(ways)
    outputs = yield [
        given
        for inputs, key in ways
        for given in (inputs, moved(probe, inputs, axis, slice(key, key + 1)))
    ]
    for (_, key), before, after in zip(ways, outputs[::2], outputs[1::2], strict=True):
        failure = _leaks(probe, far(before, after), key)
        if failure:
            return failure
    return None


def _leaks(probe: Probe, gap: Tensor, key: int) -> Failure | None:
    axis = key_axis(probe.contract)
    if axis == query_axis(probe.contract) and axis in probe.contract.output:
        gap.select(probe.contract.output.index(axis), key).fill_(False)
    if not gap.any().item():
        return None
    return Failure(
        message=f"key {key} was masked for every query; changing position {key} still "
        f"changed the output at {first_index(gap)}"
    )

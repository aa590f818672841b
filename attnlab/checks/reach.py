"""Every key that a query may attend to changes its output.

A mask that forbids too much leaks nothing, so no check for leaks finds it.

Wrong: `triu(diagonal=0)` hides each position from itself, a padding mask of the wrong side hides
the sequence, a mask applied along both axes hides whole rows; keys cut off by a slice.
Right: changing key j changes the output of every query that may attend to j, if ever so little.

Probed at a small scale, where softmax gives no key a weight too small for float32. A module that
promises to be `local` (a window, the k largest) is not looked at.
"""

from attnlab.catalogue.contract_facts import key_axis, query_axis
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import size_from_two
from attnlab.checks.shared.inputs import allowed, redraw
from attnlab.probe.answers import SMALL, Mask, Tensor


@check(
    title="Every allowed key matters",
    needs=("batch", "attention", "all-keys"),
    tier=Tier.WEIGHTS,
    advice=(
        "Print the weights of this query: which key has exactly 0 there, and which step made it 0?"
    ),
    few=True,
)
def run(probe: Probe) -> Steps:
    axis = key_axis(probe.contract)
    length = size_from_two(probe, axis, "with one key there is nothing to leave out")
    kinds: tuple[Mask, ...] = ("random", "none")
    keys = sorted({0, length - 1, probe.random_integer(0, length)})
    ways = probe.choose_ways([(kind, key) for kind in kinds for key in keys])
    samples = {kind: probe.sample(kind, SMALL) for kind, _ in ways}
    outputs = yield [
        redraw(probe, samples[kind][0], axis, slice(key, key + 1), SMALL) for kind, key in ways
    ]
    for (kind, key), after in zip(ways, outputs, strict=True):
        inputs, before = samples[kind]
        may = allowed(probe, inputs)[:, :, key]
        deaf = may & ~_rows(probe, before != after)
        if deaf.any().item():
            b, query = deaf.nonzero()[0].tolist()
            return Failure(
                message=f"query {query} of sample {b} may attend to key {key}, but changing key "
                f"{key} does not change its output; the same holds for {int(deaf.sum().item())} "
                f"of {int(may.sum().item())} queries ({kind} mask)"
            )
    return None


def _rows(probe: Probe, changed: Tensor) -> Tensor:
    """(B, queries): where anything of a row changed."""
    axes = probe.contract.output
    rows = changed.movedim((axes.index("B"), axes.index(query_axis(probe.contract))), (0, 1))
    return rows.unsqueeze(-1).flatten(2).any(2)

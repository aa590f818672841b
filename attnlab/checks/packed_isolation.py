"""Several sequences packed in one row do not meet: each gives what it gives alone.

Wrong: a block mask whose blocks overlap by one, segments compared along one axis only, positions
that run on from one sequence into the next.
Right: queries see keys of their own segment, and positions begin anew in each.

Probed by two sequences in a row and each by itself, told apart by the input whose role is
`segments`. Where a mask says it all, `mask-effect` and `padding-invariance` look.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, first_failure, size_from_two
from attnlab.checks.shared.inputs import beyond_rounding, cut_positions
from attnlab.probe.answers import Inputs, Skip, Tensor


@check(
    title="Packed sequences do not meet",
    needs=("packing", "sequence"),
    tier=Tier.GROUPS,
    advice="Print the mask of a row with two segments: two blocks of False, and True around them.",
    few=True,
)
def run(probe: Probe) -> Failure | None:
    length = size_from_two(probe, "S", "one position holds one sequence")
    if "S" not in probe.contract.vary:
        raise Skip("its length is fixed")
    cut = probe.random_integer(1, length)
    inputs = _packed(probe, cut)
    at = probe.contract.output.index("S")
    together = probe.call(inputs)
    parts = {"first": slice(0, cut), "second": slice(cut, length)}
    row = f"sequences of {cut} and {length - cut} positions were packed in one row, and the"
    return first_failure(
        _differs(
            probe,
            probe.call(_alone(probe, inputs, part)),
            together.narrow(at, part.start, part.stop - part.start),
            f"{row} {which}",
        )
        for which, part in parts.items()
    )


def _differs(probe: Probe, alone: Tensor, here: Tensor, packed: str) -> Failure | None:
    return failure_at(
        beyond_rounding(probe, alone, here),
        lambda at: (
            f"the output of {packed} differs at {at} from that of the same part by itself, by up "
            f"to {(alone - here).abs().max().item():.2g}"
        ),
    )


def _packed(probe: Probe, cut: int) -> Inputs:
    inputs = probe.draw("none")
    for spec in probe.contract.inputs:
        if spec.role == "segments":
            inputs[spec.name] = inputs[spec.name] * 0
            inputs[spec.name][..., cut:] = 1
        elif spec.role == "positions":
            places = inputs[spec.name]
            places.copy_(places.new_ones(places.shape).cumsum(-1) - 1)
            places[..., cut:] -= cut
    return inputs


def _alone(probe: Probe, inputs: Inputs, part: slice) -> Inputs:
    found = cut_positions(probe.contract, inputs, part, part)
    for spec in probe.contract.inputs:
        if spec.role == "segments":
            found[spec.name] = found[spec.name] * 0
    return found

"""Only distances count: shifting all positions changes nothing.

For rotary positions the score of a query at m and a key at n depends on m - n; a relative bias is
the same along every diagonal; a whole attention module gives the same outputs when masked padding
is put in front, which shifts all positions alike.

Wrong: a bias indexed by key position where the distance was meant; keys rotated by other
angles than queries; learned absolute positions in a module that promises relative ones.
Right: every position enters as a difference. A constant shift is no mistake: left padding, or
counting from 1, leaves the scores of rotary positions as they were; and a bias that depends on the
key alone is right where it differs by a constant per query, which softmax does not see.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.inputs import change_along
from attnlab.checks.shared.positions import bias, by_position, first, offset, plain_inputs
from attnlab.probe.answers import Inputs, Skip, Tensor

PADS = 2


@check(
    title="Only distances between positions count",
    needs=("output", "relative"),
    tier=Tier.MASKS,
    advice="Compare two pairs of positions at the same distance: which term tells them apart?",
)
def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    if position is not None and position.form == "bias":
        return _diagonals(probe, bias(probe), "bias", causal=position.causal)
    if position is not None and position.grid:
        raise Skip("on a grid neighbours in a row are no neighbours where the next one begins")
    if position is not None and position.form == "rotated":
        return _rotary_failure(probe)
    return _padded(probe)


def _rotary_failure(probe: Probe) -> Failure | None:
    """Scores of one query vector with one key vector, at all pairs of positions."""
    query = by_position(probe, probe.call(plain_inputs(probe)))[:16, 0]
    key = by_position(probe, probe.call(plain_inputs(probe)))[:16, 0]
    return _diagonals(probe, (query @ key.T)[None], "score")


def _diagonals(probe: Probe, scores: Tensor, what: str, causal: bool = False) -> Failure | None:
    """(H, Sq, Sk): along a diagonal all values are the same."""
    if min(scores.shape[-2:]) < 2:
        raise Skip("two pairs of positions at one distance are needed")
    gap = (scores[:, 1:, 1:] - scores[:, :-1, :-1]).abs()
    if causal:
        gap = gap.tril(offset(scores))
    limit = probe.tolerance(scores)
    bad = ~(gap <= limit)
    if not bad.any().item():
        return None
    h, i, j = bad.nonzero()[0].tolist()
    return Failure(
        message=f"the {what} of query {i} with key {j} and that of query {i + 1} with key {j + 1} "
        f"differ by {gap[h, i, j].item():.2g} (head {h}): at the same distance they should be equal"
    )


def _padded(probe: Probe) -> Failure | None:
    """Two masked positions in front; the outputs of the others must stay."""
    masks = [i for i in probe.contract.inputs if i.role == "mask"]
    if "S" not in probe.contract.vary or not masks or "S" not in probe.contract.output:
        raise Skip("without a mask and another length nothing can be put in front")
    wide = probe.draw("random", longer=PADS)
    if wide[first(probe)].shape == probe.draw("random")[first(probe)].shape:
        raise Skip("there is no room for more positions")
    for spec in masks:
        if "S" in spec.axes:
            wide[spec.name] = _hidden(wide[spec.name], spec.axes, spec.forbids)
    at = probe.contract.output.index("S")
    moved = probe.call(wide)
    alone = probe.call(_cut(probe, wide))
    gap = (moved.narrow(at, PADS, alone.shape[at]) - alone).abs()
    if (gap <= probe.tolerance(alone)).all().item():
        return None
    return Failure(
        message=f"{PADS} masked positions were put in front, and the outputs of the others changed "
        f"by up to {gap.max().item():.2g}"
    )


def _hidden(mask: Tensor, axes: tuple[str, ...], forbids: bool) -> Tensor:
    """Only the first keys are hidden, where a mask has no queries; else every query keeps itself,
    so that no row is empty."""
    mask = mask.clone()
    if axes[-2:] != ("S", "S"):
        mask[...] = not forbids
    mask[..., :PADS] = forbids
    if axes[-2:] == ("S", "S"):
        mask.diagonal(0, -2, -1).fill_(not forbids)
    return mask


def _cut(probe: Probe, inputs: Inputs) -> Inputs:
    """The inputs without what was put in front."""
    return change_along(
        probe, inputs, "S", lambda t, at: t.narrow(at, PADS, t.shape[at] - PADS).contiguous()
    )

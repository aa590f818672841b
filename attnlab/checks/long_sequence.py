"""A sequence of hundreds of positions gives what the reference gives.

Small sizes are quick and hide whatever is made for a few positions.

Wrong: positions in bfloat16, which has no 257; `torch.arange(S) % 256`; a mask or a table that is
made for 128 positions and cut to size.
Right: what is made is made for the length of the input.

One call of one sample, at a length just above 256, is compared with the reference; where rows may
be empty, or no position sees a later one, and the module is to work in bfloat16, so is one in that.
"""

from dataclasses import replace

from attnlab.catalogue.contract_facts import by_query, query_axis
from attnlab.checks.base import Failure, Inputs, Mask, Probe, Skip, Tensor, Tier, data_inputs
from attnlab.checks.shared.inputs import beside, moved, off, sizes_of
from attnlab.probe.answers import LOUD

TITLE = "Long sequences give what the reference gives"
NEEDS = ("reference", "output", "positions")
TIER = Tier.LEARNING
ADVICE = (
    "Look for what depends on the length: a fixed number of positions, a scale, a coarse dtype."
)
ONCE = True
COARSE = "bfloat16"
COUNTS = {"empty-rows", "causal"}  # what invites to count
# Lengths over 256, where bfloat16 has no odd numbers: a count that is one less than a multiple of
# four is rounded up to it.
FOURS = (66, 70)
PATIENCE = 2.0  # seconds that such a call may take
ROUNDED = 260  # the position before it is rounded up to it
ROUGH = 2.0**-6  # of the largest output, for what is the same but for roundings of the type
END, LOUDER = 4, 4.0  # the last positions, and their size
LATE = 11  # every so many queries see the last keys alone
UNEVEN = 120  # queries; after them counts of keys reach all that a byte can hold, and more


def run(probe: Probe) -> Failure | None:
    length = 4 * probe.random_integer(*FOURS)
    axis = query_axis(probe.contract)
    now = probe.sizes.get(axis, length)
    if axis not in probe.contract.vary or now >= length:
        raise Skip("its length is fixed, or long already")
    if probe.sizes.get("D", 0) > probe.contract.sizes.get("D", 0):
        raise Skip("long sequences are looked at in modules no wider than the example's")
    if probe.expected_seconds(length) > PATIENCE:  # a round of fewer heads may take less
        raise Skip(
            f"a call of {length} positions would take {probe.expected_seconds(length):.0f} seconds"
        )
    inputs = _ragged(probe, length - now)
    # A maximum over blocks of keys is moved by the last of them.
    loud = moved(probe, inputs, axis, slice(-END, None), LOUDER)
    failure = beside(probe, probe.call(loud), probe.expected(loud), f"{length} positions")
    failure = failure or _coarse(probe, inputs)
    return failure and replace(failure, sizes=sizes_of(probe, loud))


def _coarse(probe: Probe, inputs: Inputs) -> Failure | None:
    """In a type that has no 257: neither keys, where rows may be empty, nor positions, where none
    sees a later one, are to be counted in it."""
    contract = probe.contract
    if COARSE not in contract.dtypes or not COUNTS & set(contract.promises):
        return None
    late = sizes_of(probe, inputs).get("S", 0) > ROUNDED  # it may take no more than so many
    others = _later(probe, inputs) if late and "causal" in contract.promises else []
    out, *after = probe.cast_calls([COARSE], [inputs, *others])[0]
    failure = off(out, probe.expected(inputs), COARSE)
    failure = failure or next(filter(None, (_sees(probe, out, other) for other in after)), None)
    return failure and replace(failure, message=f"{failure.message}, for long sequences")


def _later(probe: Probe, inputs: Inputs) -> list[Inputs]:
    """Other values at late positions, and the opposite ones: if a score with a loud key is far
    down, so that nothing shows that it was seen, it is far up with the opposite one."""
    one = moved(probe, inputs, "S", slice(ROUNDED, None), LOUD)
    two = dict(one)
    for spec in data_inputs(probe.contract, "S"):
        if spec.dtype == "float":
            two[spec.name] = one[spec.name].clone()
            two[spec.name].movedim(spec.axes.index("S"), 0)[ROUNDED:].neg_()
    return [one, two]


def _sees(probe: Probe, out: Tensor, other: Tensor) -> Failure | None:
    """Whether a position before those that differ sees one of them."""
    at = probe.contract.output.index("S")
    one, two = (t.narrow(at, 0, ROUNDED).float() for t in (out, other))
    gap = (one - two).abs().max().item()
    if gap <= ROUGH * max(1.0, one.abs().max().item()):
        return None
    return Failure(
        message=f"in {COARSE} positions before {ROUNDED} changed by up to {gap:.2g} when only "
        f"those from {ROUNDED} on were changed"
    )


def _ragged(probe: Probe, longer: int) -> Inputs:
    """One sequence whose queries see one key, two, three, ... where the mask can say so; from the
    fourth on every third of the first ones sees some at random, or none where rows may be empty,
    and some see the last keys alone."""
    inputs = probe.draw("causal", longer=longer, alone=True)
    kind: Mask = "empty-rows" if "empty-rows" in probe.contract.promises else "random"
    other = probe.draw(kind, longer=longer, alone=True)
    for spec in (i for i in probe.contract.inputs if i.role == "mask"):
        mask = inputs[spec.name]
        if mask is not None and mask.dim() > 1 and by_query(spec):
            mask[..., 3:UNEVEN:3, :] = other[spec.name][..., 3:UNEVEN:3, :]
            if kind == "empty-rows":  # all keys but one hidden is what a coarse count takes for all
                one = probe.draw("one-key", longer=longer, alone=True)[spec.name]
                mask[..., 4:UNEVEN:6, :] = one[..., 4:UNEVEN:6, :]
            if (
                "causal" not in probe.contract.promises
            ):  # whole blocks are hidden, and the last seen
                mask[..., LATE:UNEVEN:LATE, :] = spec.forbids
                mask[..., LATE:UNEVEN:LATE, -END:] = not spec.forbids
        else:
            inputs[spec.name] = other[spec.name]
    return _one_document(probe, inputs)


def _one_document(probe: Probe, inputs: Inputs) -> Inputs:
    """Drawn segments are short: here one begins near the start, and is long."""
    if any(i.role == "positions" for i in probe.contract.inputs):  # that begin anew in each
        return inputs
    for spec in (i for i in probe.contract.inputs if i.role == "segments"):
        value = inputs[spec.name]
        inputs[spec.name] = value.new_zeros(value.shape)
        inputs[spec.name][..., END:] = 1
    return inputs

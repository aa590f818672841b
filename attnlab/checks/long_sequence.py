"""A sequence of hundreds of positions gives what the reference gives.

Small sizes are quick and hide whatever is made for a few positions.

Wrong: positions in bfloat16, which has no 257; `torch.arange(S) % 256`; a mask or a table that is
made for 128 positions and cut to size.
Right: what is made is made for the length of the input.

One call of one sample, at a length just above 256, is compared with the reference; where rows may
be empty and the module is to work in bfloat16, so is one in that.
"""

from dataclasses import replace

from attnlab.abilities import by_query
from attnlab.checks.base import Failure, Inputs, Mask, Probe, Skip, Tensor
from attnlab.checks.pieces import beside, off

TITLE = "Long sequences give what the reference gives"
NEEDS = ("reference", "output", "sequence")
AFTER = (
    "output-shape",
    "finite",
    "deterministic-eval",
    "input-unchanged",
    "causality",
    "second-call",
    "matches-reference",
    "long-positions",
)
ADVICE = "Look for a number of positions that is fixed, and for positions in a coarse dtype."
ONCE = True
COARSE = "bfloat16"
# Lengths over 256, where bfloat16 has no odd numbers: a count that is one less than a multiple of
# four is rounded up to it.
FOURS = (65, 69)
UNEVEN = 120  # queries; after them counts of keys reach all that a byte can hold, and more


def run(probe: Probe) -> Failure | None:
    length = 4 * probe.pick(*FOURS)
    now = probe.sizes.get("S", length)
    if "S" not in probe.contract.vary or now >= length:
        raise Skip("its length is fixed, or long already")
    wide = probe.sizes.get("D", 0) > probe.contract.sizes.get("D", 0)
    if wide and probe.sizes.get("H", 2) > 1:  # scores take as much as there are heads
        raise Skip("long sequences are looked at in narrow modules, or with one head")
    inputs = _ragged(probe, length - now)
    expected = probe.expected(inputs)
    failure = beside(probe, probe.call(inputs), expected, f"{length} positions")
    return failure or _coarse(probe, inputs, expected)


def _coarse(probe: Probe, inputs: Inputs, expected: Tensor) -> Failure | None:
    """In a type that has no 257: where rows may be empty, keys are not to be counted in it."""
    if COARSE not in probe.contract.dtypes or "empty-rows" not in probe.contract.promises:
        return None
    failure = off(probe.cast(COARSE, [inputs])[0], expected, COARSE)
    return failure and replace(failure, message=f"{failure.message}, for long sequences")


def _ragged(probe: Probe, longer: int) -> Inputs:
    """One sequence whose queries see one key, two, three, ... where the mask can say so; from the
    fourth on every third of the first ones sees some at random, or none where rows may be empty."""
    inputs = probe.draw("causal", longer=longer, alone=True)
    kind: Mask = "empty-rows" if "empty-rows" in probe.contract.promises else "random"
    other = probe.draw(kind, longer=longer, alone=True)
    for spec in (i for i in probe.contract.inputs if i.role == "mask"):
        mask = inputs[spec.name]
        if mask is not None and mask.dim() > 1 and by_query(spec):
            mask[..., 3:UNEVEN:3, :] = other[spec.name][..., 3:UNEVEN:3, :]
        else:
            inputs[spec.name] = other[spec.name]
    return inputs

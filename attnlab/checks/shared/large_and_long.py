"""Inputs of hundreds of positions, and of large values. Not a check."""

from itertools import cycle
from typing import NamedTuple

from attnlab.catalogue.contract_facts import data_inputs, has_query_axis, key_axis, query_axis
from attnlab.checks.base import Failure, Probe
from attnlab.checks.shared.compare import mask_kinds
from attnlab.checks.shared.inputs import redraw
from attnlab.probe.answers import LOUD, Inputs, Mask, Tensor
from attnlab.records import Contract

ROUNDED = 260  # the position before it is rounded up to it
ROUGH = 2.0**-6  # of the largest output, for what is the same but for roundings of the type
END, LOUDER = 4, 4.0  # the last positions, and their size
LATE = 11  # every so many queries see the last keys alone
UNEVEN = 120  # queries; after them counts of keys reach all that a byte can hold, and more
# Scale of what the positions share, and of what each has to itself, for each draw: with much in
# common all scores of a row may be far down, and be lower than a number that fills the hidden ones;
# with little, a hidden one may be so far up that a number added to it does not hide it.
DRAWS = ((90.0, 37.5), (30.0, 12.5), (18.0, 24.0))
OPEN = (60.0, 25.0)  # where no mask is given, and none is made: there is no fill to be reached
ALONE = 4  # inputs to a module that takes none: its own hides each key from some only
GRID = ("R", "C")  # rows and columns of a picture
ULP = 2.0**-23


class Way(NamedTuple):
    """A kind of mask, and the scales of the inputs."""

    mask: Mask
    shared: float
    own: float


def late_changes(probe: Probe, inputs: Inputs) -> list[Inputs]:
    """Other values at late positions, and the opposite ones: if a score with a loud key is far
    down, so that nothing shows that it was seen, it is far up with the opposite one."""
    one = redraw(probe, inputs, "S", slice(ROUNDED, None), LOUD)
    two = dict(one)
    for spec in data_inputs(probe.contract, "S"):
        if spec.dtype == "float":
            two[spec.name] = one[spec.name].clone()
            two[spec.name].movedim(spec.axes.index("S"), 0)[ROUNDED:].neg_()
    return [one, two]


def early_change(probe: Probe, out: Tensor, other: Tensor, dtype: str) -> Failure | None:
    """Whether positions before those of `late_changes` changed as well."""
    at = probe.contract.output.index("S")
    one, two = (t.narrow(at, 0, ROUNDED).float() for t in (out, other))
    gap = (one - two).abs().max().item()
    if gap <= ROUGH * max(1.0, one.abs().max().item()):
        return None
    return Failure(
        message=f"in {dtype} positions before {ROUNDED} changed by up to {gap:.2g} when only those "
        f"from {ROUNDED} on were changed"
    )


def ragged(probe: Probe, longer: int) -> Inputs:
    """One sequence whose queries see one key, two, three, ... where the mask can say so; from the
    fourth on every third of the first ones sees some at random, or none where rows may be empty,
    and some see the last keys alone."""
    inputs = probe.draw("causal", longer=longer, alone=True)
    kind: Mask = "empty-rows" if "empty-rows" in probe.contract.promises else "random"
    other = probe.draw(kind, longer=longer, alone=True)
    for spec in (i for i in probe.contract.inputs if i.role == "mask"):
        mask = inputs[spec.name]
        if mask is not None and mask.dim() > 1 and has_query_axis(spec):
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


def large_ways(contract: Contract) -> list[Way]:
    several: list[Mask] = ["random"] * len(DRAWS)
    kinds = mask_kinds(contract, *several, "none")
    if len(kinds) == 1:
        return [Way(kinds[0], *scales) for scales in (*DRAWS, *DRAWS)[:ALONE]]
    found = [Way(mask, *scales) for mask, scales in zip(kinds, cycle(DRAWS), strict=False)]
    if "causal" not in contract.promises:
        found = [Way("none", *OPEN) if way.mask == "none" else way for way in found]
    return found


def large(probe: Probe, way: Way) -> Inputs:
    contract = probe.contract
    inputs = probe.draw(way.mask, way.own)
    positions = {query_axis(contract), key_axis(contract), *GRID}
    for spec in contract.inputs:
        value = inputs[spec.name]
        if spec.role != "data" or value is None or not value.is_floating_point():
            continue
        first = value
        for at in (at for at, axis in enumerate(spec.axes) if axis in positions):
            first = first.narrow(at, 0, 1)
        if first is not value:
            inputs[spec.name] = value + probe.noise(first, way.shared)
    return inputs


def widest(probe: Probe, mask: Mask) -> Inputs:
    """Scores as large as float16 holds, those of a row all positive or all negative and no two
    alike: they are exact in each type, and so is which of them is the largest."""
    inputs = probe.draw(mask)
    for spec in data_inputs(probe.contract, key_axis(probe.contract)):
        drawn = inputs[spec.name]
        step = 2.0 ** (16 - drawn.shape[-1].bit_length())
        inputs[spec.name] = (drawn.argsort(-1) + 1) * step * drawn[..., :1].sign()
    return inputs


def nudged(probe: Probe, inputs: Inputs, by: float = ULP) -> Inputs:
    """The same with each value moved by about one rounding."""
    moving = {n: t for n, t in inputs.items() if t is not None and t.is_floating_point()}
    return inputs | {n: t + t * probe.noise(t, by) for n, t in moving.items()}

"""With the same weights and inputs, the output equals the reference's.

The reference is computed in float64 with weights that were drawn for this run and copied into both.
Only parameters are copied, never buffers: a wrong table must stay wrong.

Wrong: `scores * hd ** 0.5` where a division was meant: every other property holds, values differ.
Right: the largest difference stays within what float32 rounding explains.

A call with another length must give the same, since a mask or a table may be kept from the call
before.

Where the parameters have other names or layouts, the weights are put in by a map: declared, or
found by names and shapes and proven by equality. Without one nothing can be compared, and that is
what is said: it is not a failure.
"""

from dataclasses import replace

from attnlab.catalogue.contract_facts import abilities, by_query
from attnlab.checks.base import Failure, Inputs, Mask, Probe, Tensor, Tier, mask_input, masks, said
from attnlab.checks.shared.inputs import beside, in_steps, ordered, parts, sizes_of
from attnlab.checks.shared.mask_patterns import SHAPES, shaped
from attnlab.probe.answers import LOUD, SMALL

TITLE = "Values equal the reference's"
NEEDS = ("reference", "output")
TIER = Tier.VALUES
ADVICE = (
    "Everything flows but a value is off: recompute the scores of one query by hand and compare, "
    "then what follows the heads: projection, bias, norm, residual."
)
BY_HAND = "Work out one value of the output by the formula of the task, and compare."
MORE = 2  # positions in a call with another length
STEPS = 3  # of one position, after a prompt
PAIR = 2  # positions, of which one sees the other; one alone goes on from nothing
FEWEST = 3  # samples of a batch that has a middle
WIDEST = 64  # as many positions as the module is wide, where that is no more than this


def run(probe: Probe) -> Failure | None:
    failure = _differs(probe)
    if failure is None or "attention" in abilities(probe.contract):
        return failure
    return replace(failure, advice=BY_HAND)


def _differs(probe: Probe) -> Failure | None:
    for mask, scale in _kinds(probe):
        inputs, out = probe.sample(mask, scale)
        how = ", ".join(filter(None, (said(probe.contract, mask), probe.inputs_description)))
        failure = _unlike(probe, inputs, out, how)
        if failure:
            return failure
    if not probe.thorough:
        return _in_steps(probe)
    failure = _without(probe) or _structured(probe) or _longer(probe)
    return failure or _in_steps(probe)


def _unlike(
    probe: Probe, inputs: Inputs, out: Tensor, how: str, right: Tensor | None = None
) -> Failure | None:
    """What the reference itself loses in float32, and loses alike, is nobody's fault."""
    failure = beside(probe, out, probe.expected(inputs) if right is None else right, how)
    if failure is None or beside(probe, out, probe.expected_in_float32(inputs), how) is None:
        return None
    return failure


def _structured(probe: Probe) -> Failure | None:
    """Masks that are nearly of a kind for which there is a faster way, one after the other."""
    specs = [i for i in probe.contract.inputs if i.role == "mask" and by_query(i)]
    if len(specs) != 1 or "causal" in probe.contract.promises:
        return None
    base, (spec,) = probe.draw(), specs
    hidden = base[spec.name] == spec.forbids
    masks = {name: shaped(hidden, name) for name in SHAPES}
    masks |= _along_the_batch(probe, hidden)
    given = {
        name: {**base, spec.name: mask == spec.forbids}
        for name, mask in masks.items()
        if mask is not None
    }
    calls = list(given.values())
    found = zip(given, calls, probe.calls(calls), probe.expected_each(calls), strict=True)
    for name, inputs, out, right in found:
        failure = _unlike(probe, inputs, out, f"a mask {name}", right)
        if failure:
            return failure
    return None


def _along_the_batch(probe: Probe, hidden: Tensor) -> dict[str, Tensor]:
    """For code that takes what holds of one sample for true of all."""
    found = {"that hides all keys": hidden | ~hidden}
    if "empty-rows" not in probe.contract.promises:
        found.clear()
    samples = probe.sizes.get("B", 1)
    if mask_input(probe.contract).axes[0] != "B" or samples < FEWEST:
        return found
    last, ends = hidden.clone(), hidden.clone()
    last[-1], ends[-1] = False, ends[0]
    found |= {"of which the last sample's hides nothing": last, "alike at both ends": ends}
    if "empty-rows" in probe.contract.promises:
        found["with an empty row in the second sample alone"] = one = hidden.clone()
        one[1, ..., -1, :] = True
    return found


def _without(probe: Probe) -> Failure | None:
    """Inputs that can be left out, but for masks, which are left out in samples."""
    specs = [i for i in probe.contract.inputs if i.optional and i.role != "mask"]
    for left_out in (*([spec] for spec in specs), *([specs] if len(specs) > 1 else [])):
        inputs = {**probe.draw(), **{spec.name: None for spec in left_out}}
        names = " and ".join(spec.name for spec in left_out)
        failure = _unlike(probe, inputs, probe.call(inputs), f"without {names}")
        if failure:
            return failure
    return None


def _in_steps(probe: Probe) -> Failure | None:
    """The same with a cache: a long prompt, and one position after the other."""
    facts, length = abilities(probe.contract), probe.sizes.get("S", 1)
    if not {"cache", "causal", "sequence"} <= facts or length < PAIR:
        return None
    inputs, steps = ordered(probe), min(STEPS, length - 1)
    lengths = [length - steps, *[1] * steps]
    outputs = probe.cached_steps(parts(probe.contract, inputs, lengths))
    whose = "the reference's of the whole sequence"
    return in_steps(probe, probe.expected(inputs), outputs, lengths, whose=whose)


def _kinds(probe: Probe) -> list[tuple[Mask, float]]:
    """Masks and scales of the inputs."""
    if not probe.thorough:
        return [(mask, 1.0) for mask in masks(probe.contract, "random", "none")]
    usual = masks(probe.contract, "random", "causal", "none")
    scales = (SMALL,) if "attention" in abilities(probe.contract) else (SMALL, LOUD)
    return [*((mask, 1.0) for mask in usual), *(("random", scale) for scale in scales)]


def _short(now: int, width: int) -> list[tuple[Mask, int]]:
    """One position, two, and as many as the module is wide: from now on so many more."""
    found: list[tuple[Mask, int]] = [("random", 1 - now), ("random", PAIR - now)]
    return [*found, ("random", width - now)] if 0 < width <= WIDEST else found


def _longer(probe: Probe) -> Failure | None:
    """What was kept from the calls before must not be used for a call of another length."""
    now, width = probe.sizes.get("S", 0), probe.sizes.get("D", 0)
    ways = [(mask, MORE) for mask in masks(probe.contract, "padding")]
    ways += _short(now, width) if now else []
    drawn = [probe.draw(mask, longer=more) for mask, more in ways]
    for (mask, more), inputs, out in zip(ways, drawn, probe.calls(drawn), strict=True):
        length = "two positions more" if more == MORE else f"{now + more} positions"
        how = f"{said(probe.contract, mask)}, {length}, same module"
        failure = _unlike(probe, inputs, out, how)
        if failure:
            return replace(failure, sizes=sizes_of(probe, inputs))
    return None

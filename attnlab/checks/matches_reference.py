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

from attnlab.abilities import abilities
from attnlab.checks.base import Failure, Mask, Probe, masks, said
from attnlab.checks.pieces import beside, in_steps, ordered, parts, sizes_of
from attnlab.checks.probe import LOUD, SMALL

TITLE = "Values equal the reference's"
NEEDS = ("reference", "output")
AFTER = (
    "output-shape",
    "finite",
    "input-unchanged",
    "deterministic-eval",
    "batch-independence",
    "causality",
    "mask-effect",
    "constant-value",
    "permutation-equivariance",
    "fully-masked-row",
    "formula-match",
    "reach",
    "padding-invariance",
    "mask-form-parity",
    "row-sums",
    "nan-in-masked-slots",
    "head-permutation",
    "logit-scale",
    "grouped-equals-expanded",
    "cross-context",
    "packed-isolation",
    "prefill-equals-decode",
    "chunked-prefill",
    "beam-reorder",
    "second-call",
)
ADVICE = (
    "Everything flows but a value is off: recompute the scores of one query by hand and compare."
)
BY_HAND = "Work out one value of the output by the formula of the task, and compare."
MORE = 2  # positions in a call with another length
STEPS = 3  # of one position, after a prompt
PAIR = 2  # positions, of which one sees the other; one alone goes on from nothing
WIDEST = 64  # as many positions as the module is wide, where that is no more than this


def run(probe: Probe) -> Failure | None:
    failure = _differs(probe)
    if failure is None or "attention" in abilities(probe.contract):
        return failure
    return replace(failure, advice=BY_HAND)


def _differs(probe: Probe) -> Failure | None:
    for mask, scale in _kinds(probe):
        inputs, out = probe.sample(mask, scale)
        how = ", ".join(filter(None, (said(probe.contract, mask), probe.drawn)))
        failure = beside(probe, out, probe.expected(inputs), how)
        if failure:
            return failure
    failure = _longer(probe) if probe.thorough else None
    return failure or _in_steps(probe)


def _in_steps(probe: Probe) -> Failure | None:
    """The same with a cache: a long prompt, and one position after the other."""
    facts, length = abilities(probe.contract), probe.sizes.get("S", 1)
    if not {"cache", "causal", "sequence"} <= facts or length < PAIR:
        return None
    inputs, steps = ordered(probe), min(STEPS, length - 1)
    lengths = [length - steps, *[1] * steps]
    outputs = probe.steps(parts(probe.contract, inputs, lengths))
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
        failure = beside(probe, out, probe.expected(inputs), how)
        if failure:
            return replace(failure, sizes=sizes_of(probe, inputs))
    return None

"""With the same weights and inputs, the output equals the reference's, at every size and scale.

The reference is computed in float64, with parameters (never buffers) that were drawn for this run.
The difference may be as large as float32 rounding explains.

Wrong: `scores * hd ** 0.5` where a division was meant: every other property holds, values differ. A
mask or table that is kept from the call before, though the next sequence has another length.
Right: every step of the formula, in its order.

Long sequences of a few hundred positions. Wrong: positions in bfloat16, which has no 257;
`torch.arange(S) % 256`; a mask made for 128 positions.

Large inputs, so that scores are far below 0. Wrong: `scores.masked_fill(mask, -1e3)`;
`scores.clamp(-50, 50)`. Right: a fill of -inf, or of the least number of the dtype. As much is
allowed as rounding of the inputs alone changes the reference's output.

Extreme sizes: one sample, one position, and the longest sequence `M`. Wrong: `squeeze()` without an
axis; a table with one row too few.

Where parameters have other names or layouts, a map is declared, or found by names and shapes and
proven by equality. Without one the result is "could not be told", not a failure.
"""

from dataclasses import replace

from attnlab.catalogue.contract_facts import has_query_axis, known_facts, query_axis
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure, mask_kinds
from attnlab.checks.shared.explain import BY_HAND, factor_beside, what_to_compare
from attnlab.checks.shared.inputs import (
    EPS,
    at_sizes_of,
    cached_calls,
    causal_inputs,
    change_along,
    dtype_mismatch,
    mismatch,
    redraw,
    sizes_of,
    steps_mismatch,
)
from attnlab.checks.shared.large_and_long import (
    END,
    LOUDER,
    ROUNDED,
    Way,
    early_change,
    large,
    large_ways,
    late_changes,
    nudged,
    ragged,
)
from attnlab.checks.shared.mask_patterns import unusual_masks
from attnlab.probe.answers import LOUD, SMALL, Inputs, Mask, Skip, Tensor

TITLE = "Values equal the reference's"
MORE = 2  # positions in a call with another length
STEPS = 3  # of one position, after a prompt
PAIR = 2  # positions, of which one sees the other; one alone goes on from nothing
WIDEST = 64  # as many positions as the module is wide, where that is no more than this
COARSE = "bfloat16"
COUNTS = {"empty-rows", "causal"}  # what invites to count
# Lengths over 256, where bfloat16 has no odd numbers: a count that is one less than a multiple of
# four is rounded up to it.
FOURS = (66, 70)
SHARP = 3.0  # times the inputs: scores of about 3, of which rounding takes a quarter of the room
PATIENCE = 2.0  # seconds that such a call may take
# Times the tolerance of a value: where weights are made by taking a row's log-sum-exp from scores,
# the rounding of a score of thousands moves all of them together.
ROOM = 3
SLACK = 64  # roundings in a chain, each as large as that of the input


@check(
    id="matches-reference",
    title="Values equal the reference's",
    needs=("reference", "output"),
    tier=Tier.VALUES,
    advice=BY_HAND,
)
def _equals_reference(probe: Probe) -> Failure | None:
    failure = _differs(probe)
    return failure and replace(failure, advice=failure.advice or what_to_compare(probe.contract))


def _differs(probe: Probe) -> Failure | None:
    kinds = _kinds(probe)
    failure = first_failure(_sample_differs(probe, mask, scale) for mask, scale in kinds)
    if failure or not probe.thorough:
        return failure or _in_steps(probe)
    failure = _without(probe) or _structured(probe) or _other_lengths(probe)
    return failure or _in_steps(probe)


def _sample_differs(probe: Probe, mask: Mask, scale: float) -> Failure | None:
    inputs, out = probe.sample(mask, scale)
    how = ", ".join(filter(None, (probe.mask_name(mask), probe.inputs_description)))
    return (_unlike_unrounded if scale == LOUD else _unlike)(probe, inputs, out, how)


def _unlike(
    probe: Probe, inputs: Inputs, out: Tensor, how: str, right: Tensor | None = None
) -> Failure | None:
    """How an output differs; not where the reference in float32 gives the same wrong values."""
    right = probe.expected(inputs) if right is None else right
    failure = mismatch(probe, out, right, how)
    if failure is None or mismatch(probe, out, probe.expected_in_float32(inputs), how) is None:
        return None
    if failure.advice or out.shape != right.shape or "differs" not in failure.message:
        return failure
    factor = factor_beside(probe, inputs, out, right)
    return replace(failure, message=failure.message + factor) if factor else failure


def _structured(probe: Probe) -> Failure | None:
    """Masks that are nearly of a kind for which there is a faster way, one after the other."""
    specs = [i for i in probe.contract.inputs if i.role == "mask" and has_query_axis(i)]
    if len(specs) != 1 or "causal" in probe.contract.promises:
        return None
    base, (spec,) = probe.draw(), specs
    hidden = base[spec.name] == spec.forbids
    given = {
        name: {**base, spec.name: mask == spec.forbids}
        for name, mask in unusual_masks(probe.contract, hidden).items()
    }
    calls = list(given.values())
    found = zip(given, calls, probe.calls(calls), probe.expected_each(calls), strict=True)
    return first_failure(
        _unlike(probe, inputs, out, f"a mask {name}", right) for name, inputs, out, right in found
    )


def _without(probe: Probe) -> Failure | None:
    """Inputs that can be left out, but for masks, which are left out in samples."""
    names = [i.name for i in probe.contract.inputs if i.optional and i.role != "mask"]
    several = [[name] for name in names] + ([names] if len(names) > 1 else [])
    drawn = [{**probe.draw(), **dict.fromkeys(left_out)} for left_out in several]
    return first_failure(
        _unlike(probe, inputs, probe.call(inputs), f"without {' and '.join(left_out)}")
        for left_out, inputs in zip(several, drawn, strict=True)
    )


def _in_steps(probe: Probe) -> Failure | None:
    """The same with a cache: a long prompt, and one position after the other."""
    facts, length = known_facts(probe.contract), probe.sizes.get("S", 1)
    if not {"cache", "causal", "sequence"} <= facts or length < PAIR:
        return None
    inputs, steps = causal_inputs(probe), min(STEPS, length - 1)
    lengths = [length - steps, *[1] * steps]
    outputs = probe.cached_steps(cached_calls(probe.contract, inputs, lengths))
    whose = "the reference's of the whole sequence"
    return steps_mismatch(probe, probe.expected(inputs), outputs, lengths, whose=whose)


def _kinds(probe: Probe) -> list[tuple[Mask, float]]:
    """Masks and scales of the inputs. Large inputs of attention are another check's."""
    few: tuple[Mask, ...] = ("random", "causal", "none")
    usual = mask_kinds(probe.contract, *(few if probe.thorough else few[::2]))
    scales = [SMALL] if probe.thorough else []
    scales += [] if "attention" in known_facts(probe.contract) else [LOUD]
    return [*((mask, 1.0) for mask in usual), *(("random", scale) for scale in scales)]


def _other_lengths(probe: Probe) -> Failure | None:
    """What was kept from the calls before must not be used for a call of another length."""
    now, width = probe.sizes.get("S", 0), probe.sizes.get("D", 0)
    usual, more = probe.mask_name("random"), "two positions more"
    ways = [
        (mask, MORE, f"{probe.mask_name(mask)}, {more}")
        for mask in mask_kinds(probe.contract, "padding")
    ]
    lengths = [1, PAIR, width] if 0 < width <= WIDEST else [1, PAIR]
    ways += [("random", n - now, f"{usual}, {n} positions") for n in lengths] if now else []
    drawn = [probe.draw(mask, longer=more) for mask, more, _ in ways]
    return first_failure(
        at_sizes_of(probe, inputs, _unlike(probe, inputs, out, f"{how}, same module"))
        for (_, _, how), inputs, out in zip(ways, drawn, probe.calls(drawn), strict=True)
    )


@check(
    id="long-sequence",
    title="Values equal the reference's for long sequences",
    needs=("reference", "output", "positions"),
    tier=Tier.LEARNING,
    advice="Look for what depends on the length: a number of positions, a scale, a dtype.",
    once=True,
)
def _long_sequence(probe: Probe) -> Failure | None:
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
    inputs = ragged(probe, length - now)
    # A maximum over blocks of keys is moved by the last of them.
    loud = redraw(probe, inputs, axis, slice(-END, None), LOUDER)
    # Distances that are slightly wrong show where scores are sharp.
    sharp = [_larger(probe, inputs, SHARP)] if "relative" in probe.contract.promises else []
    how = f"{length} positions"
    failure = first_failure(
        _unlike_unrounded(probe, each, probe.call(each), how) for each in (loud, *sharp)
    )
    failure = failure or _coarse(probe, inputs)
    return failure and replace(failure, sizes=sizes_of(probe, loud))


def _unlike_unrounded(probe: Probe, inputs: Inputs, out: Tensor, how: str) -> Failure | None:
    """What no rounding explains: one row of so many may be nearly constant, and large inputs make
    weights of scores that are nearly equal."""
    failure = _unlike(probe, inputs, out, how)
    return failure if failure and not _is_rounding(probe, inputs, out) else None


def _coarse(probe: Probe, inputs: Inputs) -> Failure | None:
    """In a type that has no 257: neither keys, where rows may be empty, nor positions, where none
    sees a later one, are to be counted in it. Where scores depend on distances they are made
    large as well: weights that are nearly equal hide which key stands where."""
    contract = probe.contract
    if COARSE not in contract.dtypes or not COUNTS & set(contract.promises):
        return None
    sharp = [_larger(probe, inputs, SHARP)] if "relative" in contract.promises else []
    late = sizes_of(probe, inputs).get("S", 0) > ROUNDED  # it may take no more than so many
    others = late_changes(probe, inputs) if late and "causal" in contract.promises else []
    near = [inputs, *sharp]
    outputs = probe.cast_calls([COARSE], [*near, *others])[0]
    found = [
        *(_unlike_coarse(probe, x, out) for x, out in zip(near, outputs, strict=False)),
        *(early_change(probe, outputs[0], other, COARSE) for other in outputs[len(near) :]),
    ]
    failure = first_failure(found)
    return failure and replace(failure, message=f"{failure.message}, for long sequences")


def _unlike_coarse(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    """What is more than rounding of the inputs changes, as where two keys are nearly equal."""
    right = probe.expected(inputs)
    if not dtype_mismatch(out, right, COARSE):
        return None
    moved = probe.expected(nudged(probe, inputs, EPS[COARSE])) - right
    return dtype_mismatch(out, right, COARSE, ROOM * moved.abs().max().item())


def _larger(probe: Probe, inputs: Inputs, factor: float) -> Inputs:
    data = [i.name for i in probe.contract.inputs if i.role == "data" and i.dtype == "float"]
    return {n: t * factor if n in data and t is not None else t for n, t in inputs.items()}


@check(
    id="large-inputs",
    title="Values equal the reference's for large inputs",
    needs=("reference", "output", "floats", "scores"),
    tier=Tier.REGIMES,
    advice="Look for numbers that scores are filled with or clamped to: here scores are thousands.",
    few=True,
)
def _large_inputs(probe: Probe) -> Steps:
    ways = large_ways(probe.contract)
    drawn = [large(probe, way) for way in ways]
    outputs = yield drawn
    found = zip(drawn, outputs, probe.expected_each(drawn), ways, strict=True)
    return first_failure(_exceeds_rounding(probe, *each) for each in found)


def _exceeds_rounding(
    probe: Probe, inputs: Inputs, out: Tensor, expected: Tensor, way: Way
) -> Failure | None:
    gap, limit = (out.double() - expected).abs(), ROOM * probe.tolerance(expected)
    if (gap <= limit).all().item():
        return None
    limit = max(limit, _rounding(probe, inputs, expected))
    if (gap <= limit).all().item():
        return None
    limit = max(limit, ROOM * (probe.expected_in_float32(inputs) - expected).abs().max().item())
    return failure_at(
        ~(gap <= limit),
        lambda at: (
            f"for inputs of scale {way.shared:g} the output differs from the reference's at "
            f"{at}, by up to {gap.max().item():.2g}; rounding explains {limit:.2g}"
            f"{probe.with_mask(way.mask)}"
        ),
    )


def _rounding(probe: Probe, inputs: Inputs, expected: Tensor) -> float:
    """What a chain of roundings as large as that of the input may change, where it is steepest."""
    return SLACK * float((probe.expected(nudged(probe, inputs)) - expected).abs().max().item())


def _is_rounding(probe: Probe, inputs: Inputs, out: Tensor) -> bool:
    right = probe.expected(inputs)
    if out.shape != right.shape:
        return False
    gap = (out.double() - right.double()).abs()
    return bool((gap <= _rounding(probe, inputs, right)).all().item())


@check(
    id="edge-shapes",
    title="The smallest and largest sizes work",
    needs=("output",),
    tier=Tier.REGIMES,
    advice="Print the shapes of this call step by step: which axis of size 1 is lost?",
    once=True,
)
def _extreme_sizes(probe: Probe) -> Failure | None:
    return _one_sample(probe) or _extreme_lengths(probe)


def _one_sample(probe: Probe) -> Failure | None:
    """The last sample of a batch, alone in a batch of one."""
    axes = probe.contract.output
    size = probe.sizes.get("B", 1)
    if size < 2 or "B" not in probe.contract.vary or "B" not in axes:
        return None
    inputs, whole = probe.sample()
    one = change_along(probe, inputs, "B", lambda t, at: t.narrow(at, size - 1, 1).contiguous())
    whole = whole.narrow(axes.index("B"), size - 1, 1)
    return failure_at(
        far(whole, probe.call(one)),
        lambda at: (
            f"sample {size - 1} alone gave another output than in the batch of {size}, "
            f"first at {at}"
        ),
    )


def _extreme_lengths(probe: Probe) -> Failure | None:
    """One position, and as many as there may be."""
    if "S" not in probe.contract.vary or "S" not in probe.contract.sizes:
        return None
    for length in sorted({1, probe.sizes.get("M", 1)}):
        other = probe.variant({"S": length})
        if not other.call(other.draw("random")).isfinite().all().item():
            return Failure(message=f"a sequence of {length} gave NaN or infinity")
    return None

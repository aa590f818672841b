"""In another dtype the output is the same, up to the rounding of that dtype.

The module is moved with `.to(dtype)` and given inputs of that type; the output must be of that
type, finite, and near what float32 gives.

Wrong: `torch.zeros(S, S)` as a mask, which is float32 whatever x is, and meets float16 in a matmul;
`masked_fill(mask, -1e9)`, which is -inf in float16; a table that is cast to float32 on the way out;
a float32 mask beside float64 queries in `F.scaled_dot_product_attention`, whose kernel for the CPU
reads other numbers out of it from 16 keys on.
Right: `x.new_zeros`, `torch.finfo(x.dtype).min` or -inf, and the dtype of x in and out.

Looked at are the types that the contract names, at the length of the round, at one that is longer
than what a vectorised kernel takes in one go, and for one position alone without a mask; gradients
in train mode, where there is a reference; and whether masked keys, and later ones, change nothing
there, too: in float64 a weight of 1e-9 that a mask has left is seen. Where the contract promises
`float16-range`, scores are as large as float16 holds: times a constant before they are cast, they
are infinite, and all of them the largest. Where it promises `float64-precision`, a softmax in
float32 is seen.
"""

from dataclasses import replace
from typing import NamedTuple

from attnlab.catalogue.contract_facts import key_axis, known_facts, query_axis
from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, first_failure, mask_kinds
from attnlab.checks.shared.inputs import (
    EPS,
    at_sizes_of,
    cast_gradient_mismatch,
    dtype_mismatch,
    gradient_mismatch,
    hide_key,
    redraw,
    sizes_of,
)
from attnlab.checks.shared.large_and_long import widest
from attnlab.probe.answers import LOUD, Inputs, Mask, Skip, Tensor

SAME = 4.0  # roundings of an output between two calls that are to give the same
LONGER = (33, 40)  # positions more: two vectors of 16 float32 numbers, and a rest
FINE = 1e-10  # of float64, which rounds to 1e-16; float32 rounds to 6e-8
NARROW = "Look for what is cast to float32 whatever x is: .float(), dtype=torch.float32, a table."
LARGE = 1e4  # more than what is drawn at any scale: inputs that are to fill a type's range
CAST = "Cast to float32 before anything is multiplied: float16 ends at 65504."


@check(
    title="The output is the same in other dtypes",
    needs=("output", "dtypes"),
    tier=Tier.REGIMES,
    advice=(
        "Look for tensors made without a dtype, and for constants that float16 cannot hold: it "
        "ends at 65504, and what is below 6e-8 is 0."
    ),
    once=True,
)
def run(probe: Probe) -> Failure | None:
    kinds = mask_kinds(probe.contract, "random")
    samples = [probe.sample(mask) for mask in kinds]
    samples += _others(probe, kinds[-1], samples[-1][0])
    dtypes, hidden = probe.contract.dtypes, _hidden(probe)
    pairs = [inputs for one in hidden for inputs in (one.before, one.after)]
    found = probe.cast_calls(dtypes, [*(inputs for inputs, _ in samples), *pairs])
    failure = first_failure(
        first_failure(
            at_sizes_of(probe, inputs, _mismatch(probe, inputs, out, exact, dtype))
            for (inputs, exact), out in zip(samples, outputs, strict=False)
        )
        or first_failure(
            _shows(probe, one, outputs[at], outputs[at + 1], dtype)
            for at, one in zip(range(len(samples), len(outputs), 2), hidden, strict=True)
        )
        for dtype, outputs in zip(dtypes, found, strict=True)
    )
    narrow = [dtype for dtype in dtypes if dtype != "float64"]
    return failure or _gradients(probe, narrow, kinds[-1])


def _gradients(probe: Probe, narrow: list[str], mask: Mask) -> Failure | None:
    """In other types; what is wrong in float32 as well is none of theirs."""
    failure = cast_gradient_mismatch(probe, narrow, mask)
    if failure is None:
        return None
    inputs, usual = probe.gradient_sample(mask)
    right = probe.expected_gradients(inputs, usual.cotangent)
    wrong = gradient_mismatch(probe, usual.parameters, right.parameters, "")
    wrong = wrong or gradient_mismatch(probe, usual.inputs, right.inputs, "")
    return None if wrong else failure


def _mismatch(
    probe: Probe, inputs: Inputs, out: Tensor, exact: Tensor, dtype: str
) -> Failure | None:
    failure = dtype_mismatch(out, exact, dtype)
    floats = [t for t in inputs.values() if t is not None and t.is_floating_point() and t.numel()]
    top = max((t.abs().max().item() for t in floats), default=0.0)
    if failure and top > LARGE:
        says = f"{failure.message}, for inputs of up to {top:g} in size"
        return replace(failure, message=says, advice=CAST)
    if failure or dtype != "float64" or "float64-precision" not in probe.contract.promises:
        return failure
    right = probe.expected(inputs)
    gap = (out - right).abs().max().item()
    says = f"in float64 the output is right to {gap:.2g} only: a step is rounded to a narrower type"
    fine = gap <= FINE * max(1.0, right.abs().max().item())
    return None if fine else Failure(message=says, advice=NARROW)


class Hidden(NamedTuple):
    """Inputs with a key that is hidden from all others, and the same with other values of it."""

    before: Inputs
    after: Inputs
    key: int
    why: str = "was masked for every query"


def _hidden(probe: Probe) -> list[Hidden]:
    """Loud inputs: a fill of -1000 is more than what float16's other scores are. Of still ones, a
    residual does not drown a weight of 1e-9 that a mask has left."""
    length, facts = probe.sizes.get(key_axis(probe.contract), 1), known_facts(probe.contract)
    if length < 2:
        return []
    if {"causal", "sequence"} <= facts and "mask" not in facts:
        before, last = probe.draw(), slice(length - 1, length)
        later = Hidden(before, redraw(probe, before, "S", last), length - 1, "is the last one")
        return [later]
    return [
        found
        for scale in (LOUD, 1.0)
        if {"mask", "keys"} <= facts and (found := _masked(probe, scale, length))
    ]


def _masked(probe: Probe, scale: float, length: int) -> Hidden | None:
    key = probe.random_integer(int("causal" in probe.contract.promises), length)
    try:
        before = hide_key(probe, probe.draw("one-key", scale), key, length)
    except Skip:
        return None
    changed = slice(key, key + 1)
    return Hidden(before, redraw(probe, before, key_axis(probe.contract), changed), key)


def _shows(
    probe: Probe, hidden: Hidden, before: Tensor, after: Tensor, dtype: str
) -> Failure | None:
    """Whether the hidden key is seen. What overflows is no sign of it."""
    before, after = before.double(), after.double()
    gap = (before - after).abs().nan_to_num(0.0, 0.0, 0.0)
    axis = key_axis(probe.contract)
    if axis == query_axis(probe.contract) and axis in probe.contract.output:
        gap.select(probe.contract.output.index(axis), hidden.key).zero_()
    same = FINE if dtype == "float64" else SAME * EPS[dtype]  # whatever is rounded inside
    bad = gap > same * before.abs().nan_to_num(0.0, 0.0, 0.0).clamp(min=1.0)
    return failure_at(
        bad,
        lambda where: (
            f"in {dtype} key {hidden.key} {hidden.why}, but changing it "
            f"changed the output at {where}, by up to {gap.max().item():.2g}"
        ),
        f"Print the masked scores in {dtype}: each must be far below all others, or -inf.",
    )


def _others(probe: Probe, mask: Mask, usual: Inputs) -> list[tuple[Inputs, Tensor]]:
    """A longer sequence, and one position alone without a mask, where the length is free."""
    more = probe.random_integer(*LONGER)
    drawn = probe.draw(mask, longer=more, alone=True), probe.draw("none", longer=-more, alone=True)
    sizes = sizes_of(probe, usual)
    others = [inputs for inputs in drawn if sizes_of(probe, inputs) != sizes]
    if "float16-range" in probe.contract.promises:
        others.append(widest(probe, mask))
    return list(zip(others, probe.calls(others), strict=True))

"""In another floating-point type the module gives the same, as exactly as that type allows.

The module is moved with `.to(dtype)` and given inputs of that type; the output must be of that
type, finite, and near what float32 gives.

Wrong: `torch.zeros(S, S)` as a mask, which is float32 whatever x is, and meets float16 in a matmul;
`masked_fill(mask, -1e9)`, which is -inf in float16; a table that is cast to float32 on the way out;
a float32 mask beside float64 queries in `F.scaled_dot_product_attention`, whose kernel for the CPU
reads other numbers out of it from 16 keys on.
Right: `x.new_zeros`, `torch.finfo(x.dtype).min` or -inf, and the dtype of x in and out.

Looked at are the types that the contract names, at the length of the round, at one that is longer
than what a vectorised kernel takes in one go, and for one position alone without a mask; gradients
in train mode, where there is a reference.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from attnlab.checks.base import CannotTell, Failure, Inputs, Mask, Probe, Tensor, masks
from attnlab.checks.pieces import EPS, ROUNDINGS, off, sizes_of

TITLE = "Other dtypes give the same"
NEEDS = ("output", "dtypes")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "matches-reference")
ADVICE = "Look for tensors made without a dtype, and for constants that are too large for float16."
ONCE = True


LONGER = (33, 40)  # positions more: two vectors of 16 float32 numbers, and a rest


def run(probe: Probe) -> Failure | None:
    kinds = masks(probe.contract, "random")
    samples = [probe.sample(mask) for mask in kinds]
    samples += _others(probe, kinds[-1], samples[-1][0])
    dtypes = probe.contract.dtypes
    found = probe.cast(dtypes, [inputs for inputs, _ in samples])
    for dtype, outputs in zip(dtypes, found, strict=True):
        for out, (inputs, exact) in zip(outputs, samples, strict=True):
            failure = off(out, exact, dtype)
            if failure:
                return replace(failure, sizes=sizes_of(probe, inputs))
    return _slopes(probe, kinds[-1])


def _slopes(probe: Probe, mask: Mask) -> Failure | None:
    """Where there is a reference, gradients of train mode are like its own."""
    dtypes, (inputs, _) = probe.contract.dtypes, probe.sample(mask)
    found = probe.cast_gradients(dtypes, inputs, train="dropout" not in probe.contract.promises)
    try:
        right = probe.expected_gradients(inputs, found[0].cotangent)
    except CannotTell:
        return None
    for dtype, mine in zip(dtypes, found, strict=True):
        failure = _unlike(mine.parameters, right.parameters, dtype)
        failure = failure or _unlike(mine.inputs, right.inputs, dtype)
        if failure:
            return failure
    return None


def _unlike(found: Mapping[str, Tensor], right: Mapping[str, Tensor], dtype: str) -> Failure | None:
    """Sums of many values that nearly cancel are as far off as the largest of all gradients."""
    largest = max((g.abs().max().item() for g in right.values() if g.numel()), default=0.0)
    limit = ROUNDINGS * EPS[dtype] * max(1.0, largest)
    for name, expected in right.items():
        mine = found.get(name, expected * 0).double()
        gap = (mine - expected).abs().max().item() if mine.shape == expected.shape else math.inf
        if not gap <= limit:
            missing = "" if name in found else ": none reaches it"
            return Failure(
                message=f"in {dtype} the gradient of {name} is off by up to {gap:.2g} of "
                f"{expected.abs().max().item():.2g} from the reference's; rounding explains "
                f"{limit:.2g}{missing}"
            )
    return None


def _others(probe: Probe, mask: Mask, usual: Inputs) -> list[tuple[Inputs, Tensor]]:
    """A longer sequence, and one position alone without a mask, where the length is free."""
    more = probe.pick(*LONGER)
    drawn = probe.draw(mask, longer=more, alone=True), probe.draw("none", longer=-more, alone=True)
    sizes = sizes_of(probe, usual)
    others = [inputs for inputs in drawn if sizes_of(probe, inputs) != sizes]
    return list(zip(others, probe.calls(others), strict=True))

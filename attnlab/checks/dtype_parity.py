"""In another floating-point type the module gives the same, as exactly as that type allows.

The module is moved with `.to(dtype)` and given inputs of that type; the output must be of that
type, finite, and near what float32 gives.

Wrong: `torch.zeros(S, S)` as a mask, which is float32 whatever x is, and meets float16 in a matmul;
`masked_fill(mask, -1e9)`, which is -inf in float16; a table that is cast to float32 on the way out;
a float32 mask beside float64 queries in `F.scaled_dot_product_attention`, whose kernel for the CPU
reads other numbers out of it from 16 keys on.
Right: `x.new_zeros`, `torch.finfo(x.dtype).min` or -inf, and the dtype of x in and out.

Looked at are the types that the contract names, at the length of the round and at one that is
longer than what a vectorised kernel takes in one go.
"""

from dataclasses import replace

from attnlab.checks.base import Failure, Inputs, Mask, Probe, Tensor, masks
from attnlab.checks.pieces import off, sizes_of

TITLE = "Other dtypes give the same"
NEEDS = ("output", "dtypes")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "matches-reference")
ADVICE = "Look for tensors made without a dtype, and for constants that are too large for float16."
ONCE = True


LONGER = (33, 40)  # positions more: two vectors of 16 float32 numbers, and a rest


def run(probe: Probe) -> Failure | None:
    kinds = masks(probe.contract, "random")
    samples = [probe.sample(mask) for mask in kinds]
    samples += _longer(probe, kinds[-1], samples[-1][0])
    dtypes = probe.contract.dtypes
    found = probe.cast(dtypes, [inputs for inputs, _ in samples])
    for dtype, outputs in zip(dtypes, found, strict=True):
        for out, (inputs, exact) in zip(outputs, samples, strict=True):
            failure = off(out, exact, dtype)
            if failure:
                return replace(failure, sizes=sizes_of(probe, inputs))
    return None


def _longer(probe: Probe, mask: Mask, short: Inputs) -> list[tuple[Inputs, Tensor]]:
    """One sample more of a longer sequence, where the length is free."""
    inputs = probe.draw(mask, longer=probe.pick(*LONGER))
    if sizes_of(probe, inputs) == sizes_of(probe, short):
        return []
    return [(inputs, probe.call(inputs))]

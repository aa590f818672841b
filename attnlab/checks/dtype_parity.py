"""In another floating-point type the module gives the same, as exactly as that type allows.

The module is moved with `.to(dtype)` and given inputs of that type; the output must be of that
type, finite, and near what float32 gives.

Wrong: `torch.zeros(S, S)` as a mask, which is float32 whatever x is, and meets float16 in a matmul;
`masked_fill(mask, -1e9)`, which is -inf in float16; a table that is cast to float32 on the way out.
Right: `x.new_zeros`, `torch.finfo(x.dtype).min` or -inf, and the dtype of x in and out.

Looked at are the types that the contract names.
"""

from attnlab.checks.base import Failure, Probe, masks
from attnlab.checks.pieces import off

TITLE = "Other dtypes give the same"
NEEDS = ("output", "dtypes")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "matches-reference")
ADVICE = "Look for tensors made without a dtype, and for constants that are too large for float16."
ONCE = True


def run(probe: Probe) -> Failure | None:
    samples = [probe.sample(mask) for mask in masks(probe.contract, "random")]
    dtypes = probe.contract.dtypes
    found = probe.cast(dtypes, [inputs for inputs, _ in samples])
    for dtype, outputs in zip(dtypes, found, strict=True):
        for out, (_, exact) in zip(outputs, samples, strict=True):
            failure = off(out, exact, dtype)
            if failure:
                return failure
    return None

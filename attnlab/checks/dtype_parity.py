"""In another floating-point type the module gives the same, as exactly as that type allows.

The module is moved with `.to(dtype)` and given inputs of that type; the output must be of that
type, finite, and near what float32 gives.

Wrong: `torch.zeros(S, S)` as a mask, which is float32 whatever x is, and meets float16 in a matmul;
`masked_fill(mask, -1e9)`, which is -inf in float16; a table that is cast to float32 on the way out.
Right: `x.new_zeros`, `torch.finfo(x.dtype).min` or -inf, and the dtype of x in and out.

Looked at are the types that the contract names.
"""

from attnlab.checks.base import Failure, Probe, Tensor, first_index, masks

TITLE = "Other dtypes give the same"
NEEDS = ("output", "dtypes")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "matches-reference")
ADVICE = "Look for tensors made without a dtype, and for constants that are too large for float16."
ONCE = True
EPS = {"float64": 2**-23, "bfloat16": 2**-8, "float16": 2**-11}
SLACK = 24  # a chain of a few roundings, each relative to the largest value


def run(probe: Probe) -> Failure | None:
    samples = [probe.sample(mask) for mask in masks(probe.contract, "random")]
    for dtype in probe.contract.dtypes:
        outputs = probe.cast(dtype, [inputs for inputs, _ in samples])
        for out, (_, exact) in zip(outputs, samples, strict=True):
            failure = _compare(out, exact, dtype)
            if failure:
                return failure
    return None


def _compare(out: Tensor, exact: Tensor, dtype: str) -> Failure | None:
    if str(out.dtype).removeprefix("torch.") != dtype:
        return Failure(message=f"module and inputs are {dtype}, and the output is {out.dtype}")
    bad = ~out.isfinite()
    if bad.any().item():
        return Failure(
            message=f"in {dtype} {int(bad.sum().item())} output values are NaN or infinite, the "
            f"first at {first_index(bad)}"
        )
    gap = (out.double() - exact.double()).abs().max().item()
    limit = SLACK * EPS[dtype] * max(1.0, exact.abs().max().item())
    if not gap <= limit:
        return Failure(
            message=f"in {dtype} the output is off by up to {gap:.2g} from float32's; rounding "
            f"explains {limit:.2g}"
        )
    return None

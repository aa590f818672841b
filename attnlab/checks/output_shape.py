"""The output is one floating-point tensor of the shape that the task states.

The most basic property: without it no other can be looked at. A candidate that raises fails here
first, because it has no output at all.

Wrong: `return out.flatten(1)` gives (B, S*D) where (B, S, D) is asked for.
Right: `return out` with the axes and the dtype of the input, or of the weights beside ids.

Probed with and without the optional mask, at the sizes of the example and at others: a reshape
that fits only because S equals hd fits only there. Where float32 is promised whatever comes in, as
of a table of which only the shape of the input matters, inputs in float64 are tried as well.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import describe, expected_shape
from attnlab.probe.answers import Mask, Tensor

FLOAT32 = "torch.float32"


@check(
    title="The output has the stated shape",
    needs=("output",),
    tier=Tier.SHAPE,
    advice="Compare the end of the trace with the shape that the task states.",
)
def run(probe: Probe) -> Failure | None:
    shape = expected_shape(probe)
    masks: tuple[Mask, ...] = ("random", "causal", "none")
    for mask in masks:
        inputs, out = probe.sample(mask)
        if tuple(out.shape) != shape:
            return Failure(
                message=f"the output is {describe(out, probe)}, expected "
                f"({', '.join(probe.contract.output)}) = {shape}"
            )
        if not out.is_floating_point():
            return Failure(message=f"the output is {out.dtype}, expected floating point")
        floats = [i.name for i in probe.contract.inputs if i.dtype == "float"]
        if floats and out.dtype != inputs[floats[0]].dtype:
            return Failure(
                message=f"the output is {out.dtype}, expected {inputs[floats[0]].dtype}, "
                f"the dtype of {floats[0]}"
            )
    if not any(i.dtype == "float" for i in probe.contract.inputs):
        failure = _of_the_weights(probe, out)
        if failure:
            return failure
    return _fixed(probe) if "float32-output" in probe.contract.promises else None


def _of_the_weights(probe: Probe, out: Tensor) -> Failure | None:
    """Ids have no floating-point type: the weights say which it is."""
    weights = [w for w in probe.parameters().values() if w.is_floating_point()]
    types = {w.dtype for w in weights}
    if not weights or out.dtype in types:
        return None
    return Failure(
        message=f"the output is {out.dtype}, expected {weights[0].dtype}, the dtype of the weights"
    )


def _fixed(probe: Probe) -> Failure | None:
    """The output is in float32, also where the input is not."""
    inputs, out = probe.sample()
    if str(out.dtype) != FLOAT32:
        return Failure(message=f"the output is {out.dtype}, expected {FLOAT32}")
    floats = [i.name for i in probe.contract.inputs if i.dtype == "float"]
    casts = {
        "float64": {name: inputs[name].double() for name in floats},
        "float16": {name: inputs[name].half() for name in floats},
        "bfloat16": {name: inputs[name].bfloat16() for name in floats},
        "int64": {name: inputs[name].long() for name in floats},
        "int32": {name: inputs[name].int() for name in floats},
        "bool": {name: inputs[name] > 0 for name in floats},
    }
    outputs = probe.calls([{**inputs, **cast} for cast in casts.values()])
    for dtype, found in zip(casts, outputs, strict=True):
        if found.dtype != out.dtype:
            return Failure(
                message=f"with {floats[0]} in {dtype} the output is {found.dtype}, expected "
                f"{out.dtype}"
            )
    return None

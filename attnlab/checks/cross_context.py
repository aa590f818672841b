"""Queries come from x, keys and values from the context, and queries do not meet each other.

Wrong: keys from the context and values from x, a context that is only used where lengths agree, a
softmax over the queries, a mean over them.
Right: changing query i changes output i alone; changing the context changes every output; and
where the module knows no positions, the context in another order (with its mask) changes nothing.
"""

from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Tensor,
    data_inputs,
    far,
    first_index,
    query_axis,
)
from attnlab.checks.pieces import apart, moved

TITLE = "Queries from x, keys and values from the context"
NEEDS = ("context", "batch", "attention")
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence", "mask-effect")
ADVICE = "Write the source of q, of k and of v beside each projection, and the axis of the softmax."


def run(probe: Probe) -> Failure | None:
    own = query_axis(probe.contract)
    inputs = probe.draw("random")
    out = probe.call(inputs)
    return (
        _meet(probe, inputs, out, own)
        or _deaf(probe, inputs, out)
        or ("averaging" in probe.contract.promises and _ordered(probe, inputs, out))
        or None
    )


def _meet(probe: Probe, inputs: Inputs, out: Tensor, own: str) -> Failure | None:
    query = probe.pick(0, probe.sizes[own])
    gap = far(out, probe.call(moved(probe, inputs, own, slice(query, query + 1))))
    gap.select(probe.contract.output.index(own), query).fill_(False)
    if gap.any().item():
        return Failure(
            message=f"only query {query} was changed, and the output at {first_index(gap)} changed"
        )
    return None


def _deaf(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    new = probe.call(moved(probe, inputs, "Sk", slice(None)))
    if (new == out).all().item():
        names = ", ".join(spec.name for spec in data_inputs(probe.contract, "Sk"))
        return Failure(message=f"another {names} gave the very same output")
    return None


def _ordered(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    turned = dict(inputs)
    for spec in probe.contract.inputs:
        if "Sk" in spec.axes and inputs[spec.name] is not None:
            axis = spec.axes.index("Sk")
            turned[spec.name] = inputs[spec.name].roll(1, axis).flip(axis)
    gap = apart(probe, out, probe.call(turned))
    if gap.any().item():
        return Failure(
            message="the context was put in another order, its mask with it, and the output "
            f"changed at {first_index(gap)}"
        )
    return None

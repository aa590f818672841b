"""Queries come from x, keys and values from the context, and queries do not mix.

Wrong: keys from the context and values from x, a context that is only used where lengths agree, a
softmax over the queries, a mean over them.
Right: changing query i changes output i alone, unless the module is causal among its queries as a
decoder layer is; changing the context changes every output; and where the module knows no
positions, the context in another order (with its mask) changes nothing.
"""

from attnlab.catalogue.contract_facts import data_inputs, query_axis
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far
from attnlab.checks.shared.inputs import beyond_rounding, change_along, redraw
from attnlab.probe.answers import Tensor


@check(
    title="Queries from x, keys and values from the context",
    needs=("context", "batch", "attention"),
    tier=Tier.WEIGHTS,
    advice=(
        "Write the source of q, of k and of v beside each projection, and the axis of the softmax."
    ),
    few=True,
)
def run(probe: Probe) -> Steps:
    own = query_axis(probe.contract)
    inputs, out = probe.sample()
    query = probe.random_integer(0, probe.sizes[own])
    one, other, turned = yield [
        redraw(probe, inputs, own, slice(query, query + 1)),
        redraw(probe, inputs, "Sk", slice(None)),
        change_along(probe, inputs, "Sk", lambda value, at: value.roll(1, at).flip(at)),
    ]
    failure = _deaf(probe, out, other)
    if "causal" not in probe.contract.promises:
        failure = _meet(probe, far(out, one), query) or failure
    if "averaging" in probe.contract.promises:
        failure = failure or _ordered(beyond_rounding(probe, out, turned))
    return failure


def _meet(probe: Probe, gap: Tensor, query: int) -> Failure | None:
    gap.select(probe.contract.output.index(query_axis(probe.contract)), query).fill_(False)
    return failure_at(
        gap, lambda where: f"only query {query} was changed, but the output at {where} changed too"
    )


def _deaf(probe: Probe, out: Tensor, other: Tensor) -> Failure | None:
    if not (other == out).all().item():
        return None
    names = ", ".join(spec.name for spec in data_inputs(probe.contract, "Sk"))
    return Failure(message=f"changing {names} did not change the output")


def _ordered(gap: Tensor) -> Failure | None:
    return failure_at(
        gap,
        lambda where: f"permuting the context, and its mask with it, changed the output at {where}",
    )

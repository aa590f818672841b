"""The verb that answers with every value of a call."""

from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.gradient_recorder import Backward, GradientRecorder
from attnlab.candidate.input_copies import cast_inputs
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.value_recorder import ValueRecorder, record_values
from attnlab.tracer.cast import Given, fresh


@verb
def values(
    session: Session,
    name: str | None,
    init: dict[str, Any],
    seed: int,
    weights: dict[str, Tensor],
    inputs: Given,
    patches: list[dict[str, Any]] | None = None,
    only_output: bool = False,
    backward: dict[str, Any] | None = None,
    pick: int = 0,
) -> Any:
    """Build the target in float64, load weights, call it; all values, or the output alone.

    `patches` are records of call, slot and value: results to be put in place of its own. With
    `backward`, the fields of a `Backward`, values have gradients. Of the tensors that are returned
    number `pick` is the output."""
    lent = {(p["call"], p["slot"]): p["value"] for p in patches or ()}
    given = fresh(cast_inputs(inputs, torch.float64))

    def build() -> Any:
        session.build(name, init, seed, session.arguments)
        return session.target

    def load() -> None:
        session.set_parameters(weights)

    with OtherTarget(session):
        recorder = GradientRecorder(Backward(**backward)) if backward else ValueRecorder(lent)
        found = record_values(build, load, session.invoke, given, recorder, pick)
    if only_output:
        return {"result": found.result}
    return {
        "values": [{**vars(value), "numbers": value.numbers} for value in found.values],
        "output": found.output,
        "result": found.result,
        "returned": found.returned,
        "alone": found.alone,
    }

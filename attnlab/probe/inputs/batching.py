"""Calls of a reference in one batch: it treats each sequence by itself, and a small call costs
nearly as much as a large one."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attnlab.probe.answers import Inputs
from attnlab.records import Contract

Form = tuple[object, ...]


def call_in_batch(
    contract: Contract, several: Sequence[Inputs], call: Callable[[Inputs], Tensor]
) -> list[Tensor]:
    """The output for each; inputs of one form are put behind one another along the batch, where all
    that goes in and out has one."""
    groups: dict[Form, list[int]] = {}
    for number, inputs in enumerate(several):
        groups.setdefault(_form(contract, inputs, number), []).append(number)
    found: dict[int, Tensor] = {}
    for group in groups.values():
        found |= zip(group, _together([several[n] for n in group], call), strict=True)
    return [found[number] for number in range(len(several))]


def _form(contract: Contract, inputs: Inputs, number: int) -> Form:
    """What inputs have in common that can be stacked; of its own where they cannot."""
    axes = [contract.output, *(i.axes for i in contract.inputs)]
    if not all(a and a[0] == "B" for a in axes):
        return (number,)
    return tuple((n, None if t is None else (t.shape, t.dtype)) for n, t in inputs.items())


def _together(several: list[Inputs], call: Callable[[Inputs], Tensor]) -> Sequence[Tensor]:
    if len(several) == 1:
        return [call(several[0])]
    first = several[0]
    batch = {
        name: None if t is None else torch.cat([inputs[name] for inputs in several])
        for name, t in first.items()
    }
    return call(batch).chunk(len(several))

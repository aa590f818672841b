"""The inputs with which two modules are compared."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Values
from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.probe.answers import Inputs, Mask, Skip
from attnlab.probe.probe import Probe

MASKS: tuple[Mask, ...] = ("random", "causal", "none", "padding")


def draws_by_mask(probe: Probe) -> Iterator[tuple[Mask, list[Inputs]]]:
    """Kinds of masks, with two draws of inputs for each; those with which the reference gives NaN,
    as for rows without any key, only where it gives it with all. Where a mask of keys alone leaves
    the first query none, as none is earlier, its first key is seen."""
    assert probe.reference is not None
    reference = probe.reference

    def gives_nan(inputs: Inputs) -> bool:
        return _has_nan(reference.values(inputs))

    def calm(inputs: Inputs) -> Inputs:
        opened = _with_first_key(probe, inputs)
        if opened is None or not (gives_nan(inputs) or _has_nan(probe.values(inputs, {}))):
            return inputs
        still = gives_nan(opened) or _has_nan(probe.values(opened, {}))
        return inputs if still else opened

    late: list[tuple[Mask, list[Inputs]]] = []
    clear = False
    kinds = _masks(probe)
    for mask in kinds:
        try:
            drawn = [calm(probe.draw(mask)) for _ in range(2)]
        except Skip:
            continue
        if len(kinds) > 1 and mask != "empty-rows" and any(map(gives_nan, drawn)):
            late.append((mask, drawn))
            continue
        clear = True
        yield mask, drawn
    yield from [] if clear else late


def _has_nan(values: Values) -> bool:
    return values.result is not None and bool(values.result.isnan().any())


def _with_first_key(probe: Probe, inputs: Inputs) -> Inputs | None:
    """The inputs, where masks of keys alone let the first one be seen; None where they do so."""
    opened: dict[str, Tensor | None] = {}
    for spec in probe.contract.inputs:
        mask = inputs.get(spec.name)
        if spec.role != "mask" or mask is None or has_query_axis(spec):
            continue
        if mask.dtype is torch.bool and (mask[..., 0] == spec.forbids).any():
            seen = mask.clone()
            seen[..., 0] = not spec.forbids
            opened[spec.name] = seen
    return {**inputs, **opened} if opened else None


def _masks(probe: Probe) -> tuple[Mask, ...]:
    """The masks that are tried; rows without any key only where it is promised what they give."""
    if not any(entry.role == "mask" for entry in probe.contract.inputs):
        return MASKS[:1]
    return (*MASKS, "empty-rows") if "empty-rows" in probe.contract.promises else MASKS

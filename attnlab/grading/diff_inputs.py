"""The inputs with which two modules are compared."""

from __future__ import annotations

from collections.abc import Iterator

from attnlab.probe.answers import Inputs, Mask, Skip
from attnlab.probe.probe import Probe

MASKS: tuple[Mask, ...] = ("random", "causal", "none", "padding")


def draws_by_mask(probe: Probe) -> Iterator[tuple[Mask, list[Inputs]]]:
    """Kinds of masks, with two draws of inputs for each; those with which the reference gives NaN,
    as for rows without any key, only where it gives it with all."""
    assert probe.reference is not None
    reference = probe.reference

    def gives_nan(inputs: Inputs) -> bool:
        result = reference.values(inputs).result
        return result is not None and bool(result.isnan().any())

    late: list[tuple[Mask, list[Inputs]]] = []
    clear = False
    kinds = _masks(probe)
    for mask in kinds:
        try:
            drawn = [probe.draw(mask) for _ in range(2)]
        except Skip:
            continue
        if len(kinds) > 1 and mask != "empty-rows" and any(map(gives_nan, drawn)):
            late.append((mask, drawn))
            continue
        clear = True
        yield mask, drawn
    yield from [] if clear else late


def _masks(probe: Probe) -> tuple[Mask, ...]:
    """The masks that are tried; rows without any key only where it is promised what they give."""
    if not any(entry.role == "mask" for entry in probe.contract.inputs):
        return MASKS[:1]
    return (*MASKS, "empty-rows") if "empty-rows" in probe.contract.promises else MASKS

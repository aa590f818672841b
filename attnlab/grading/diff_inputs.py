"""The inputs with which two modules are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from attnlab.candidate.host import Raised, checked_answer
from attnlab.candidate.value_recorder import Values
from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.probe.answers import Inputs, Mask, Skip
from attnlab.probe.inputs import draw
from attnlab.probe.probe import GradingContext, Probe
from attnlab.probe.reference import BadReference, NotOneTensor
from attnlab.records import Contract, Input
from attnlab.sizes import Sizes, constructor_arguments

MASKS: tuple[Mask, ...] = ("random", "causal", "none", "padding")


REDRAWS = 4  # of ids with which one of the two gives NaN
SMALL, LARGE = ((8, 12), (8, 8), (16, 16)), 17  # sides of pictures, and what is large
Guessed = Collection[str]  # arguments whose axes the user did not say


def with_small_pictures(context: GradingContext, sizes: Sizes, guessed: Guessed) -> GradingContext:
    """The context with the smallest pictures that both take, in place of guessed large ones."""
    large = [i for i in context.contract.inputs if i.argument in guessed and _sides(i)]
    turns = max((len(_sides(i)) for i in large), default=0)
    for turn, new in product(range(turns), SMALL):
        made = {i.name: replace(i, axes=_with_sides(i, turn, new)) for i in large}
        inputs = tuple(made.get(i.name, i) for i in context.contract.inputs)
        smaller = replace(context.contract, inputs=inputs)
        if _run_both(context, smaller, sizes):
            return replace(context, contract=smaller)
    return context


def _sides(entry: Input) -> list[int]:
    """The places at which two equal large numbers, the sides of a picture, may begin: at the end,
    or before channels as many."""
    axes = entry.axes
    pairs = range(len(axes) - 2, 0, -1) if len(axes) > 3 else ()
    return [
        i for i in pairs if axes[i].isdigit() and axes[i] == axes[i + 1] and int(axes[i]) >= LARGE
    ]


def _with_sides(entry: Input, turn: int, new: tuple[int, int]) -> tuple[str, ...]:
    places = _sides(entry)
    first = places[min(turn, len(places) - 1)]
    return (*entry.axes[:first], *map(str, new), *entry.axes[first + 2 :])


def _run_both(context: GradingContext, contract: Contract, sizes: Sizes) -> bool:
    """Whether a call of either runs to its end."""
    init, reference = constructor_arguments(contract.init, sizes), context.reference
    inputs = draw.inputs(contract, sizes, context.dice, "none")
    try:
        if reference is not None:
            reference.equip(init, context.dice)
            reference.call(inputs)
        checked_answer(context.host.ask("build", name=context.name, init=init, seed=0))
        checked_answer(context.host.ask("call", inputs=list(inputs.items())))
    except NotOneTensor:
        return True
    except (BadReference, Raised):
        return False
    return True


def draws_by_mask(probe: Probe) -> Iterator[tuple[Mask, list[Inputs]]]:
    """Kinds of masks, with two draws of inputs for each; those with which the reference gives NaN,
    as for rows without any key, only where it gives it with all. Where a mask of keys alone leaves
    the first query none, as none is earlier, its first key is seen; ids that begin with padding are
    drawn again."""
    assert probe.reference is not None
    reference = probe.reference

    def gives_nan(inputs: Inputs) -> bool:
        return _has_nan(reference.values(inputs))

    def nan_in_one(inputs: Inputs) -> bool:
        return gives_nan(inputs) or _has_nan(probe.values(inputs, {}))

    def calm(mask: Mask) -> Inputs:
        inputs = probe.draw(mask)
        opened = _with_first_key(probe, inputs)
        if opened is not None:
            return opened if nan_in_one(inputs) and not nan_in_one(opened) else inputs
        for _ in range(REDRAWS if _takes_ids(probe) else 0):
            if not nan_in_one(inputs):
                break
            inputs = probe.draw(mask)
        return inputs

    late: list[tuple[Mask, list[Inputs]]] = []
    clear = False
    kinds = _masks(probe)
    for mask in kinds:
        try:
            drawn = [calm(mask) for _ in range(2)]
        except Skip:
            continue
        if len(kinds) > 1 and mask != "empty-rows" and any(map(gives_nan, drawn)):
            late.append((mask, drawn))
            continue
        clear = True
        yield mask, drawn
    yield from [] if clear else late


def _takes_ids(probe: Probe) -> bool:
    """Whether what is hidden may be told by ids alone."""
    return any(spec.dtype == "int" and spec.role == "data" for spec in probe.contract.inputs)


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

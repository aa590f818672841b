"""Switch off single operations of a call: each gives what it was given, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.candidate.value_recorder import ValueRecorder
from attnlab.tracer.nested_tensors import tensors_in


class Switch(NamedTuple):
    """What an operation gives instead: its operand `passes`, or zeros in some slices of its result;
    slices `first`, `first + step` and so on along `axis`, or all where `axis` is None."""

    passes: int | None = None  # which of its tensors
    axis: int | None = None
    first: int = 0
    step: int = 1


class SwitchRecorder(ValueRecorder):
    """Counts calls as a `ValueRecorder` does, and records nothing."""

    def __init__(self, switches: Mapping[int, Switch]) -> None:
        super().__init__({})
        self.switches = switches

    def index(self, tensor: Tensor) -> int:  # noqa: ARG002
        return 0

    def _note(self, *_: object) -> None:
        pass

    def compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        switch = self.switches.get(self.calls)
        if switch is None:
            return func(*args, **kwargs)
        taken = list(tensors_in((args, kwargs)))
        before = None if switch.passes is None else taken[switch.passes].clone()
        out = func(*args, **kwargs)
        made = out if isinstance(out, Tensor) or not taken else taken[0]  # what was written into
        if not isinstance(made, Tensor):
            return out
        put = _without_slices(made, switch) if before is None else before
        if any(made is each for each in taken):
            made.copy_(put)
            return out
        return put.to(made.dtype).expand_as(made)


def _without_slices(made: Tensor, switch: Switch) -> Tensor:
    if switch.axis is None:
        return torch.zeros_like(made)
    kept = made.clone()
    kept.movedim(switch.axis, 0)[switch.first :: switch.step] = 0
    return kept


@contextmanager
def passing(modules: Sequence[nn.Module]) -> Iterator[None]:
    """While it lasts, these modules give the first tensor that they are given."""
    hooks = [m.register_forward_hook(_pass, with_kwargs=True) for m in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _pass(_: nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
    given = next(iter(tensors_in((args, kwargs))))
    if isinstance(out, Tensor):
        return given.expand_as(out)
    return type(out)((given.expand_as(out[0]), *out[1:]))

"""Record the operations of one training step, and compute its losses from them again.

What is recorded lies below autograd, so that any loop, model and loss can be repeated: every
operation that depends on the trained weights runs anew, and all else, the batch included, stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.utils._python_dispatch import TorchDispatchMode

from attnlab.tracer.nested_tensors import map_tensors, tensors_in

BERNOULLI = torch.ops.aten.bernoulli_.float
DETACH = torch.ops.aten.detach.default
LONGEST = 100_000  # operations of a step


class _Call(NamedTuple):
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    graded: bool  # whether gradients were on

    def read(self) -> set[int]:
        return {_memory(t) for t in tensors_in((self.args, self.kwargs))}

    def changed(self) -> set[int]:
        """The memory of what it changes in place."""
        given = zip(self.function._schema.arguments, self.args, strict=False)
        changed = [a for s, a in given if s.alias_info is not None and s.alias_info.is_write]
        return {_memory(t) for t in tensors_in(changed)}

    def written(self) -> set[int]:
        return self.changed() | {_memory(t) for t in tensors_in(self.out)}


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What runs while it is on; `losses` are those that the step's backward passes began at."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[_Call] = []
        self.losses: list[Tensor] = []
        self.kept: dict[int, Tensor] = {}  # copies of what the operations are given
        self.before: list[tuple[Tensor, bool]] = []
        self.weights: list[Tensor] = []
        self.paused, self.custom = True, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not self.paused and len(self.calls) < LONGEST:
            self.calls.append(_Call(func, args, kwargs or {}, out, torch.is_grad_enabled()))
        return out

    def hold(self, weights: Iterable[Tensor]) -> None:
        """These are the weights that are trained: their values now are those to begin with."""
        self.weights = list(weights)
        self.before = [(w.detach().clone(), w.requires_grad) for w in self.weights]

    def prepare(self) -> None:
        """Keep what computes the losses from the weights, and a copy of what it starts from."""
        # Inside of a function of the script's own, gradients are off though its result has one.
        self.custom = any(_is_custom(t) for call in self.calls for t in tensors_in(call.out))
        own = {_memory(w) for w in self.weights}
        moving = set(own)
        size = -1
        while size != len(moving):  # what is filled later is made anew as well
            size = len(moving)
            for call in self.calls:
                if call.read() & moving:
                    moving |= call.written()
        needed, memory, kept = set(map(id, self.losses)), set[int](), []
        for call in reversed(self.calls):
            wanted = any(id(t) in needed for t in tensors_in(call.out)) or call.changed() & memory
            if wanted and call.written() & moving and not call.changed() & own:
                needed |= set(map(id, tensors_in((call.args, call.kwargs))))
                memory |= call.read()
                kept.append(call)
        self.calls = kept[::-1]
        made = {id(t) for call in kept for t in tensors_in(call.out)}
        for tensor in (t for call in kept for t in tensors_in((call.args, call.kwargs))):
            if id(tensor) not in made and _memory(tensor) not in moving:
                self.kept.setdefault(id(tensor), tensor.detach().clone())

    def loss(self, drops: bool = True) -> Tensor:
        """The sum of the step's losses at the weights as they are, with or without dropout."""
        known = dict(self.kept)
        made: Any
        first: dict[Any, Tensor] = {}  # by memory, shape and strides

        def now(tensor: Tensor) -> Tensor:
            return known.get(id(tensor), tensor)

        for function, args, kwargs, out, graded in self.calls:
            args, kwargs = map_tensors(now, (args, kwargs))  # noqa: PLW2901
            if function is BERNOULLI and not drops:
                share = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
                made = args[0].fill_(share)  # by which it is divided
            elif function is DETACH and out.requires_grad:  # autograd takes out what it saved
                made = first[_place(out)]
            else:
                with nullcontext() if graded or self.custom else torch.no_grad():
                    made = function(*args, **kwargs)
            for old, new in zip(tensors_in(out), tensors_in(made), strict=True):
                known[id(old)] = new
                first.setdefault(_place(old), new)
        return torch.stack([now(loss).sum() for loss in self.losses]).sum()

    def rewind(self) -> None:
        """Give the weights the values that they had when the step began."""
        with torch.no_grad():
            for weight, (value, graded) in zip(self.weights, self.before, strict=True):
                weight.requires_grad_(graded).copy_(value)


def _is_custom(tensor: Tensor) -> bool:
    try:
        return isinstance(tensor.grad_fn, BackwardCFunction)
    except RuntimeError:  # of a view that was written over, nobody may ask it
        return False


def _place(tensor: Tensor) -> tuple[Any, ...]:
    """What is the same of a tensor and its aliases."""
    if tensor.layout is not torch.strided:
        return (id(tensor),)
    return _memory(tensor), tensor.storage_offset(), tensor.shape, tensor.stride()


def _memory(tensor: Tensor) -> int:
    """What tensors share that are views of one another."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # a sparse one has none
        return id(tensor)

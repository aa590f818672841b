"""Record every value of a call with the gradient that reaches it, and try what would set it right.

A gradient can be put in place of that of a value, and an operation that cuts gradients can be made
to pass them on: where the gradients of inputs and weights then are right, that was what is wrong.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.value_recorder import Value, ValueRecorder, numbers_of
from attnlab.tracer.cast import Given
from attnlab.tracer.op_kinds import kind_of
from attnlab.tracer.recorder import user_location

COPIES = {"detach", "detach_", "data"}  # that cut a gradient and do nothing else


@dataclass(frozen=True)
class Backward:
    """What is sent back from the output, and what is changed on the way."""

    cotangent: Tensor
    put: Sequence[tuple[int, Tensor]] = ()  # gradients of values, with their index
    undo: Sequence[int] = ()  # calls of operations that are to pass gradients on


class GradientRecorder(ValueRecorder):
    """Records values in a call with autograd, then their gradients in its backward pass."""

    def __init__(self, asked: Backward) -> None:
        super().__init__({})
        self.asked, self._put_there = asked, dict(asked.put)
        self._zeros: list[Tensor] = []  # let a gradient be put where none would come by

    def prepare(self, given: Given) -> Given:
        """Copies that require a gradient and are no leaves, as those of a layer in a network."""
        with torch.enable_grad():
            return [(name, _as_of_a_layer(t) if t is not None else t) for name, t in given]

    def record(self, call: Callable[[Given], Any], given: Given) -> Any:
        with torch.enable_grad():
            with self:
                out = call(given)
            if isinstance(out, Tensor) and out.is_floating_point():
                self.index(out)
                self._send_back(out)
        return out

    def _send_back(self, out: Tensor) -> None:
        sent = [(out * self.asked.cotangent.to(out.dtype)).sum(), *self._zeros]
        sent = [each for each in sent if each.requires_grad]
        if sent:
            torch.stack(sent).sum().backward()  # type: ignore[no-untyped-call]

    def index(self, tensor: Tensor) -> int:
        found = super().index(tensor)
        self._listen(found, tensor)  # an own autograd.Function makes it live after it was recorded
        return found

    def _add(self, value: Value, tensor: Tensor) -> None:
        super()._add(value, tensor)
        value.tracked = torch.is_grad_enabled() or value.call < 0
        self._listen(len(self.values) - 1, tensor)

    def _listen(self, index: int, tensor: Tensor) -> None:
        """Remember the gradient that will reach a value, once it can have one."""
        value = self.values[index]
        made_untracked = value.call >= 0 and not torch.is_grad_enabled()  # as initial values are
        if value.live or made_untracked or not tensor.requires_grad:
            return
        value.live = True
        value.backward = _own_backward(tensor)
        lent = self._put_there.get(index)
        if lent is not None:
            lent = torch.view_as_complex(lent) if tensor.is_complex() else lent.to(tensor.dtype)

        def look(gradient: Tensor | None) -> Tensor | None:
            put = gradient if lent is None else lent  # none of a result that nobody takes
            value.gradient = None if put is None else numbers_of(put)
            return lent

        tensor.register_hook(look)  # type: ignore[no-untyped-call]
        if lent is not None:
            with torch.enable_grad():
                self._zeros.append((tensor * 0).sum())

    def compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        if kind_of(func).name == "register_hook" and args and isinstance(args[0], Tensor):
            code, line, _ = user_location(sys._getframe(2), {})
            own = [code.co_filename, line] if code else []
            self.values[self.index(args[0])].hooked = own
        if self.calls not in self.asked.undo:
            return func(*args, **kwargs)
        if kind_of(func).name in COPIES:
            return args[0]
        with torch.enable_grad():
            return func(*args, **kwargs)


def _as_of_a_layer(tensor: Tensor) -> Tensor:
    return tensor.clone().requires_grad_().clone() if tensor.is_floating_point() else tensor


def _own_backward(tensor: Tensor) -> list[Any]:
    """The name, file and lines of the backward that the user wrote for what made a tensor."""
    function = getattr(tensor.grad_fn, "_forward_cls", None)
    if function is None:
        return []
    try:
        code = inspect.unwrap(function.backward).__code__
        lines, start = inspect.getsourcelines(code)
        first = next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
        return [function.__name__, code.co_filename, start + first, start + len(lines) - 1]
    except (OSError, TypeError, AttributeError):
        return [function.__name__, "", 0, 0]

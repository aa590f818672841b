"""A recorder for scripts: it records the first call of a module, then stops the script."""

import sys
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from attnlab.tracer.bind_arguments import bound_arguments, keyword_arguments, named_tensors
from attnlab.tracer.nested_tensors import map_tensors, tensors_in
from attnlab.tracer.recorder import Recorder, module_names


def in_constructor(frame: FrameType | None) -> bool:
    """Whether a module is being made, which may call its parts to see what shape they return."""
    while frame is not None:
        made = frame.f_locals.get("self") if frame.f_code.co_name == "__init__" else None
        if isinstance(made, nn.Module):
            return True
        frame = frame.f_back
    return False


class StopDemo(BaseException):
    """Raised to stop a script after the recorded call."""


class FirstCallRecorder(Recorder):
    """Records the first outermost call of a module in whatever runs, and stops after it."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        self.given: list[tuple[str, Tensor]] = []
        self.call: tuple[nn.Module, tuple[Any, ...], dict[str, Any]] | None = None
        self._deep = 0  # calls of modules that have begun and not ended
        self._hooks: list[Any] = []
        self._before: BaseException | None = None  # what the script was handling at the call

    @property
    def began(self) -> bool:
        return self.root is not None

    def __enter__(self) -> Self:
        self._hooks = [
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if not self.began and in_constructor(sys._getframe(1)):
            return
        if not self.began:
            self.active = True
            self._before = sys.exception()
            self.root = module
            self._names = module_names(module)
            kwargs = dict(keyword_arguments(sys._getframe(1)))
            self.given = [*named_tensors(bound_arguments(module, args, kwargs))]
            self.name_inputs([t for _, t in self.given])
            with torch._C.DisableTorchFunction():  # the call may write into its inputs
                copies = map_tensors(lambda t: t.detach().clone(), (args, kwargs))
            self.call = (module, *copies)
        self._deep += 1

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:  # noqa: ARG002
        self._deep = max(self._deep - 1, 0)
        if self.active and not self._deep:
            self.active = False
            self.name_outputs(tensors_in(out))
            if sys.exception() is self._before:  # else the call raised, which ends the script
                raise StopDemo

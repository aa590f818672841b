"""Verbs that look at the properties of a model on a batch: the example's, or a demo's own."""

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.loss import _Loss
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnlab.candidate.live_properties import Hints, live_properties
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.verbs.traces import main_of
from attnlab.records import to_json
from attnlab.tracer.bind_arguments import keyword_arguments
from attnlab.tracer.cast import Given, pack
from attnlab.tracer.demo_recorder import StopDemo
from attnlab.training.one_batch import learn_with_module

ModuleCall = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
LOSSES = {F.cross_entropy, F.nll_loss}


@verb
def look_at_properties(
    session: Session,
    inputs: Given,
    promised: Sequence[str],
    unpromised: Sequence[str],
    overfit: float = 0.0,
) -> Any:
    """The properties of the target on these inputs, as the JSON text of a `LiveReport`; they are
    learned for `overfit` seconds, told as that of a `TrainingLog`."""
    packed = pack(inputs, session.containers) if session.containers else inputs
    none = _none_by_default(getattr(session.target, "forward", session.target))
    # What is None anyway is left out: a mask may then be tried in its place.
    given = [(name, value) for name, value in packed if value is not None or name not in none]
    args, kwargs = session.call_arguments(given)
    hints = Hints(promised=tuple(promised), unpromised=tuple(unpromised))
    return _answer((session.target, tuple(args), kwargs), hints, overfit)


def _none_by_default(forward: Callable[..., Any]) -> set[str]:
    try:
        takes = inspect.signature(forward).parameters
    except (TypeError, ValueError):  # one that is written in C
        return set()
    return {name for name, taken in takes.items() if taken.default is None}


@verb
def look_at_demo(
    session: Session,
    file: str,
    text: str,
    path: str,
    own: dict[str, Any],
    promised: Sequence[str],
    unpromised: Sequence[str],
    overfit: float = 0.0,
) -> Any:
    """The same of the first module that a file calls when it runs, on the inputs of that call."""
    run = main_of(session, file, text, path, own)
    watch = _FirstCall()
    with suppress(StopDemo), watch:
        run()
    if watch.call is None:
        raise LookupError(f"{file} ran to its end without calling a module")
    hints = Hints(watch.targets, tuple(promised), tuple(unpromised))
    return _answer(watch.call, hints, overfit)


def _answer(call: ModuleCall, hints: Hints, seconds: float) -> dict[str, str]:
    report = {"report": to_json(live_properties(*call, hints))}
    return report | ({"log": to_json(learn_with_module(*call, seconds))} if seconds else {})


class _FirstCall(TorchFunctionMode):
    """Notes the first call of a module, and the targets of the loss that follows, if one does."""

    call: ModuleCall | None = None
    targets: Tensor | None = None
    inside = 0  # calls of modules that have begun and not ended

    def __enter__(self) -> Self:
        self.hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for hook in self.hooks:
            hook.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in LOSSES and self.call and not self.inside:
            self._stop(args[1] if len(args) > 1 else kwargs.get("target"))
        return func(*args, **kwargs)

    def _enter_module(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.call is None:
            self.call = (module, args, dict(keyword_arguments(sys._getframe(1))))
        elif not self.inside:
            self._stop(args[1] if isinstance(module, _Loss) and len(args) > 1 else None)
        self.inside += 1

    def _leave_module(self, *_: object) -> None:
        self.inside = max(self.inside - 1, 0)

    def _stop(self, targets: object) -> None:
        self.targets = targets if isinstance(targets, Tensor) else None
        raise StopDemo

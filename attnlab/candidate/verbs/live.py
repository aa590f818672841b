"""Verbs that look at the properties of a model on a batch: the example's, or a demo's own."""

import inspect
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.loss import _Loss
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnlab.candidate.live.ablation import ablate
from attnlab.candidate.live.demo_run import SECONDS, DemoRun
from attnlab.candidate.live_properties import Hints, live_properties, with_demo
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.verbs.traces import main_of
from attnlab.records import LiveReport, to_json
from attnlab.tracer.bind_arguments import keyword_arguments
from attnlab.tracer.cast import Given, pack
from attnlab.tracer.demo_recorder import StopDemo, in_constructor
from attnlab.training.one_batch import learn_with_module
from attnlab.training.patches import Patches, ScratchFiles, run_alone, run_plainly

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
    hints = Hints(promised=tuple(promised), unpromised=tuple(unpromised))
    call = _example_call(session, inputs)
    return _answer(call, live_properties(*call, hints), overfit)


@verb
def ablate_example(session: Session, inputs: Given, seconds: float = 0.0) -> Any:
    """What each part of the target does on these inputs, as the JSON text of an
    `AblationReport`."""
    return {"report": to_json(ablate(*_example_call(session, inputs), seconds=seconds))}


def _example_call(session: Session, inputs: Given) -> ModuleCall:
    packed = pack(inputs, session.containers) if session.containers else inputs
    none = _none_by_default(getattr(session.target, "forward", session.target))
    # What is None anyway is left out: a mask may then be tried in its place.
    given = [(name, value) for name, value in packed if value is not None or name not in none]
    args, kwargs = session.call_arguments(given)
    return session.target, tuple(args), kwargs


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
    try:
        call, targets = _first_call(session, file, text, path, own)
    except LookupError:  # its functions are traced
        return {"report": to_json(LiveReport())}
    hints = Hints(targets, tuple(promised), tuple(unpromised))
    live = live_properties(*call, hints)
    whole = DemoRun(file)
    with suppress(Exception, SystemExit, StopDemo):
        _run_in_scratch(main_of(session, file, text, path, own), whole)
    return _answer(call, with_demo(live, whole.faults(), hints), overfit)


@verb
def ablate_demo(session: Session, file: str, text: str, path: str, own: dict[str, Any]) -> Any:
    """What each part does of the first module that a file calls when it runs."""
    call, targets = _first_call(session, file, text, path, own)
    return {"report": to_json(ablate(*call, targets))}


def _first_call(
    session: Session, file: str, text: str, path: str, own: dict[str, Any]
) -> tuple[ModuleCall, Tensor | None]:
    """The first call of a module in a demo, and the targets of the loss that follows."""
    watch = _FirstCall()
    with suppress(StopDemo):
        _run_in_scratch(main_of(session, file, text, path, own), watch)
    if watch.call is None:
        raise LookupError(f"{file} ran to its end without calling a module")
    return watch.call, watch.targets


def _run_in_scratch(run: Callable[[], None], watch: AbstractContextManager[Any]) -> None:
    """Run a demo; what it writes goes to a folder that is thrown away."""
    patches = Patches()
    files = ScratchFiles(patches, set())
    run_plainly(patches)
    run_alone(patches, set())
    try:
        with watch:
            run()
    finally:
        patches.undo()
        shutil.rmtree(files.folder, ignore_errors=True)


def _answer(call: ModuleCall, live: LiveReport, seconds: float) -> dict[str, str]:
    report = {"report": to_json(live)}
    return report | ({"log": to_json(learn_with_module(*call, seconds))} if seconds else {})


class _FirstCall(TorchFunctionMode):
    """Notes the first call of a module, and the targets of the loss that follows, if one does."""

    call: ModuleCall | None = None
    targets: Tensor | None = None
    ends = 0.0  # when the demo is stopped
    inside = 0  # calls of modules that have begun and not ended

    def __enter__(self) -> Self:
        self.profile = sys.getprofile()
        self.hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self.profile)
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for hook in self.hooks:
            hook.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in LOSSES and self.call and not self.inside:
            self._stop(args[1] if len(args) > 1 else kwargs.get("target"))
        return func(*args, **kwargs)

    def _enter_module(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.call is None and in_constructor(sys._getframe(1)):
            return
        if self.call is None:
            self.call = (module, args, dict(keyword_arguments(sys._getframe(1))))
        elif not self.inside:
            self._stop(args[1] if isinstance(module, _Loss) and len(args) > 1 else None)
        self.inside += 1

    def _leave_module(self, *_: object) -> None:
        self.inside = max(self.inside - 1, 0)
        if self.call and not self.inside:  # nothing may follow, for hours
            self.ends = self.ends or time.monotonic() + SECONDS
            sys.setprofile(self._look_at_clock)

    def _look_at_clock(self, *_: object) -> None:
        if time.monotonic() > self.ends:
            raise StopDemo

    def _stop(self, targets: object) -> None:
        self.targets = targets if isinstance(targets, Tensor) else None
        raise StopDemo

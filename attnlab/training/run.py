"""Run a script under watch and tell what was seen of its training."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from attnlab.records import OneBatch
from attnlab.tracer.in_process import BlockRecorder
from attnlab.tracer.raw_trace import RawTrace, first_line, raise_location
from attnlab.training.broken_gradient import GradientWatch
from attnlab.training.log import TrainingLog
from attnlab.training.one_batch import learn_recorded
from attnlab.training.patches import ScratchFiles, run_alone, run_plainly
from attnlab.training.scores import ModuleCall
from attnlab.training.tape import Tape
from attnlab.training.watch import StopWatching, TrainingWatch

TRACED = 2  # the step that is traced, where there are so many; the first may be a warm-up


class Watched(NamedTuple):
    """A finished run."""

    log: TrainingLog
    raw: RawTrace | None  # of one step
    call: ModuleCall | None  # the model's first call for gradients


class Wanted(NamedTuple):
    """What else is looked at."""

    source: str = ""  # of the script
    overfit: float = 0.0  # seconds in which one of its steps is learned again and again
    evaluate: tuple[str, ...] = ()  # functions to call afterwards
    retrace: bool = False  # whether only the last step counts, and is looked at closely


class _StepTracer:
    """Records what runs between two optimizer steps, and nothing of the optimizer's own."""

    def __init__(self, step: int, gradients: GradientWatch | None) -> None:
        self.wanted, self.done, self.gradients = step, 0, gradients
        self.recorder = BlockRecorder({}, None)
        self.on = self.finished = False
        self.handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._before),
            optimizer_hooks.register_optimizer_step_post_hook(self._after),
        ]

    def begin(self) -> None:
        if self.done == self.wanted - 1 and not (self.on or self.finished):
            self.on = True
            self.recorder.__enter__()
            if self.gradients:
                self.gradients.begin()

    def end(self) -> None:
        if self.on:
            self.on, self.finished = False, True
            if self.gradients:
                self.gradients.end()
            self.recorder.__exit__(None, None, None)

    def _before(self, *_: object) -> None:
        self.end()

    def _after(self, *_: object) -> None:
        self.done += 1
        self.begin()

    def pass_step(self) -> None:
        """A backward pass of a script without an optimizer is over."""
        self._before()
        self._after()

    def close(self) -> None:
        self.end()
        for handle in self.handles:
            handle.remove()


class _StepTaper:
    """Records on a tape what leads to the losses of a step, from where its optimizer was made."""

    def __init__(self, steps: int, watch: TrainingWatch) -> None:
        self.left, self.watch = min(TRACED, steps), watch
        self.tape = watch.tape = Tape()
        self.optimizer: Optimizer | None = None  # whose step it is
        self.handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._before),
            optimizer_hooks.register_optimizer_step_post_hook(self._after),
        ]
        self.tape.__enter__()  # type: ignore[no-untyped-call]

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.watch.tape is None:
            return
        self.left -= 1
        closed = len(args) > 1 or bool(kwargs)  # a closure runs the model itself
        self.tape.paused = self.left > 0 or not closed
        if self.left == 0:
            self.optimizer = optimizer
            self.tape.hold(p for group in optimizer.param_groups for p in group["params"])
            if not closed:
                self._end()

    def _after(self, *_: object) -> None:
        if self.watch.tape is None:
            return
        self.tape.paused = False
        if self.left:
            self.tape.losses.clear()
        else:
            del self.tape.losses[1:]  # the closure may have run several times
            self._end()

    def _end(self) -> None:
        if self.watch.tape is not None:
            self.watch.tape = None
            self.tape.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.tape.prepare()

    def close(self) -> None:
        self._end()
        for handle in self.handles:
            handle.remove()


def watch_script(
    run: Callable[[], None],
    steps: int,
    file: str,
    unstoppable: Callable[[Watched], None] | None = None,
    wanted: Wanted | None = None,
) -> Watched:
    """Run a script up to its `steps`-th optimizer step.

    Where the script catches what should end it, `unstoppable` is given what was seen.
    """
    wanted = wanted or Wanted()
    gradients = GradientWatch() if wanted.retrace else None
    watch = TrainingWatch(steps, gradients)
    tracer = _StepTracer(steps if gradients else min(TRACED, steps), gradients)
    watch.after_own_backward = tracer.pass_step
    watch.after_optimizer = tracer.begin
    taper = _StepTaper(steps, watch) if wanted.overfit else None
    watch.space = {} if wanted.evaluate else None
    error: BaseException | None = None
    with watch:
        files = ScratchFiles(watch._patches, watch.not_seen)
        run_plainly(watch._patches)
        run_alone(watch._patches, watch.not_seen)

        def seen() -> Watched:
            tracer.close()
            evaluations = tuple(watch.evaluate(wanted.evaluate))
            watch.__exit__()
            names = files.names
            shutil.rmtree(files.folder, ignore_errors=True)
            crash = _told(error, file) if error is not None else ""
            main = watch.main_model()
            fault = error if isinstance(error, Exception) else None
            recorded = tracer.finished and (tracer.recorder.log or fault is not None)
            raw = tracer.recorder.raw_trace(fault) if recorded else None
            if raw is None and watch.done >= TRACED:
                watch.not_seen.add(
                    "axes and values: no step could be recorded operation by operation"
                )
            log = replace(watch.log(crash, names), source=wanted.source, evaluations=evaluations)
            if gradients is not None:
                log = replace(log, broken=gradients.found)
            if taper is not None:
                log = _with_one_batch(log, taper, wanted.overfit)
            return Watched(log, raw, main.first if main else None)

        if unstoppable is not None:
            watch.caught = lambda: unstoppable(seen())
        try:
            run()
        except StopWatching:
            pass
        except BaseException as raised:
            seen_all = isinstance(raised, SystemExit) and 0 < steps <= watch.done
            error = None if seen_all else raised
        return seen()


def _with_one_batch(log: TrainingLog, taper: _StepTaper, seconds: float) -> TrainingLog:
    """The log with what became of a step that was learned again and again."""
    runs: list[OneBatch] = []
    why = "no step of its training could be repeated"
    taper.close()
    try:
        if taper.optimizer is not None:
            runs += learn_recorded(taper.tape, taper.optimizer, seconds)
    except Exception as error:  # of code that is repeated out of its surroundings
        why = f"a step could not be repeated: {type(error).__name__}: {first_line(error)}"
    if not runs:
        return replace(log, not_seen=(*log.not_seen, f"overfitting one batch: {why}"))
    return replace(log, one_batch=tuple(runs))


def _told(error: BaseException, file: str) -> str:
    """`train.py:31: RuntimeError: ...`; "" for a script that simply ended."""
    if isinstance(error, SystemExit):
        code: Any = error.code
        return "" if code in (None, 0) else f"{file} ended with exit code {code}"
    line, at, _ = raise_location(error, file)
    if type(error).__name__ == "Hung":
        return f"{at or file}:{line}: still running when its time was over"
    return f"{at or file}:{line}: {type(error).__name__}: {first_line(error)}"

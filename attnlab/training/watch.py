"""Watch the first optimizer steps of whatever runs, and change nothing of what it computes.

Everything is seen from outside: hooks of optimizers and modules, and the functions by which a loop
names losses, gradients and schedules. After the last step the script is ended from the hook.
"""

from __future__ import annotations

import gc
import inspect
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as module_hooks
from torch.nn.modules.loss import _Loss
from torch.optim import Optimizer
from torch.optim import lr_scheduler as schedules
from torch.optim import optimizer as optimizer_hooks

from attnlab.tracer.bind_arguments import keyword_arguments
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import display_path
from attnlab.tracer.recorder import is_library_code, user_location
from attnlab.training import scores as look
from attnlab.training.broken_gradient import GradientWatch
from attnlab.training.evaluation import Evaluating, find_namespace, rows_of_call
from attnlab.training.log import (
    BackwardCall,
    Evaluation,
    LossCall,
    Model,
    OptimizerMade,
    Step,
    TrainingLog,
    Weight,
)
from attnlab.training.own_steps import OwnSteps
from attnlab.training.patches import Patches
from attnlab.training.surroundings import Surroundings
from attnlab.training.tape import Tape

PAIRED = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")  # two tensors of one shape
LOSSES = (
    *("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"),
    *(*PAIRED, "kl_div", "ctc_loss"),
)
PHASES, COAST = 3, 4.0  # most phases of a script, and seconds of CPU between two of them
CLOSELY = 4  # steps whose losses are all looked at; later every fifth step's
SNAPSHOT = 1 << 22  # weights of an optimizer that are copied around a step
SAMPLED = 8  # parameters that tell whether some script moved them
ENDLESS = 40  # backward passes, or calls for gradients, by step asked for, without a step
DRAWS = 3  # calls on one input that are meant to differ: dropout stays on for them
MODAL = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)


# Parameters by their ids, each with the gradient that it had.
_Held = dict[int, tuple[Tensor, weakref.ref[Tensor]]]


class StopWatching(BaseException):
    """Ends the script once enough steps were seen."""


def _unrecorded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, whose own operations no tracer sees."""

    @wraps(method)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return method(*args, **kwargs)

    return quiet


class _Seen:
    """What is known of one module that the script calls."""

    def __init__(self, module: nn.Module, place: tuple[str, int]) -> None:
        self.module, self.place, self.evaluation = module, place, ("", 0)
        self.phase = 0  # the last in which it learned
        self.learning = self.other = self.in_eval = self.in_train = self.evaluated_in_train = 0
        self.first: look.ModuleCall | None = None  # the first call for gradients
        self.batches: set[int] = set()  # that it learned from
        self.drawn = self.draws = 0  # the last input without gradients in train mode, and how often


class TrainingWatch:
    """Context manager: `log()` tells what was seen. `steps` ends the script; 0 never does."""

    def __init__(self, steps: int = 0, gradients: GradientWatch | None = None) -> None:
        """With `gradients` the last step is looked at closely, and the script ends there."""
        self.limit = self._steps = steps
        self.gradients = gradients
        self.phase = PHASES if gradients else 1
        self._coasting = 0.0  # while the script goes on unwatched: until when
        self.steps: list[Step] = []
        self.losses: list[LossCall] = []
        self.backwards: list[BackwardCall] = []
        self.optimizers: list[OptimizerMade] = []
        self.not_seen: set[str] = set()
        self.models: dict[int, _Seen] = {}
        self.last: look.ModuleCall | None = None  # the latest outermost call
        self._embedded: list[Tensor] = []  # ids that embeddings of the current call were given
        self._made: list[Tensor] = []  # what its layers returned last, of three axes
        self._calling: list[nn.Module] = []
        self._by_optimizer: dict[int, list[str]] = {}
        self._clip_line, self._cleared = 0, ("", 0)
        self._ids: dict[int, int] = {}  # of optimizers, in order
        self._sets: list[frozenset[int]] = []  # the parameters of each
        self._stale: _Held = {}  # parameters with gradients that a step has used
        self._foreign: _Held = {}  # those that have some when another optimizer steps
        self._living: list[weakref.ref[Optimizer]] = []
        self._sums: list[float] = []  # of some parameters, at the last backward pass
        self._before: dict[int, Tensor] = {}
        self._received: set[int] = set()
        self._moved: set[int] = set()
        self._moved_frozen: set[int] = set()
        self._owned: set[int] = set()
        self._schedule: list[tuple[str, int, int]] = []
        self._schedulers: set[int] = set()
        self._batches: set[int] = set()
        self._alive: list[tuple[int, tuple[str, int], weakref.ref[Tensor]]] = []
        self._patches = Patches()
        self._handles: list[Any] = []
        self._inside = False  # of an optimizer's step, or of a backward pass
        self._in_loss = False
        self._spreads: dict[int, float] = {}  # of matrices before their first step
        self._kept: tuple[int, tuple[str, int]] | None = None
        self._older: set[int] = set()  # what was there before is no loss of this loop
        self.caught: Callable[[], object] = lambda: None  # called where the script goes on
        self._stopped = False
        self.evaluating: Evaluating | None = None
        self.space: dict[str, Any] | None = None  # of the script at its last step, where wanted
        self.rows: set[int] = set()  # that were learned from, where they are wanted too
        self.tape: Tape | None = None  # while a step is recorded to be repeated
        self._own = OwnSteps()  # of a script without an optimizer
        self.after_own_backward: Callable[[], object] = lambda: None
        self.after_optimizer: Callable[[], object] = lambda: None  # that was made

    # ------------------------------------------------------------ begin and end

    def __enter__(self) -> Self:
        put = self._patches.put
        self._older = {id(tensor) for tensor in _single_results()}
        self._handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._before_step),
            optimizer_hooks.register_optimizer_step_post_hook(self._after_step),
            module_hooks.register_module_forward_pre_hook(self._enter_module),
            module_hooks.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        for name in LOSSES:
            put(F, name, partial(self._watched_loss, name=name))
        put(Tensor, "backward", self._watched_backward)
        put(torch.autograd, "backward", self._watched_autograd)
        put(torch.autograd, "grad", self._watched_grad)
        put(Optimizer, "__init__", self._watched_optimizer)
        put(Optimizer, "zero_grad", lambda function: self._watched_event(function, "zero"))
        put(nn.Module, "zero_grad", lambda function: self._watched_event(function, "zero"))
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            for owner in (nn.utils, nn.utils.clip_grad):
                put(owner, name, lambda function: self._watched_event(function, "clip"))
        self.around = Surroundings(self._patches, _place)
        for kind in (schedules.LRScheduler, schedules.ReduceLROnPlateau):
            put(kind, "step", self._watched_schedule)
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._patches.undo()

    @property
    def done(self) -> int:
        return len(self.steps)

    def _stop(self) -> None:
        """End the script where it has been watched for long enough.

        First it goes on for a while unwatched: another optimizer begins another phase.
        """
        if self.evaluating is not None:
            return
        if self._coasting:
            if time.thread_time() > self._coasting:  # a busy machine must not hide the next phase
                self._end()
            return
        endless = self.limit and not self.steps and (
            len(self.backwards) > ENDLESS * 2 or self._learning_calls > ENDLESS * 4
        )  # fmt: skip
        if self.limit and (self.done >= self.limit or endless):
            self._kept = self._kept or self._kept_graphs()  # before the script's frames go
            if endless or self.phase == PHASES:
                self._end()
            self._coasting, self.around.active = time.thread_time() + COAST, False

    def _end(self) -> None:
        if self._stopped:
            self.caught()
        self._stopped = True
        raise StopWatching

    def _begin_phase(self) -> None:
        """What another optimizer trains is looked at too."""
        self._coasting, self.around.active = 0.0, True
        self.phase += 1
        self.limit += self._steps
        self._stale.clear()
        self._foreign.clear()

    @property
    def _learning_calls(self) -> int:
        return sum(seen.learning for seen in self.models.values())

    # ------------------------------------------------------------ modules

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if isinstance(module, _Loss):
            return
        if not self._calling:
            self._embedded, self._made = [], []
        self._calling.append(module)
        if isinstance(module, nn.Embedding) and args and isinstance(args[0], Tensor):
            self._embedded.append(args[0])

    @_unrecorded
    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:
        if isinstance(module, _Loss):
            return
        while self._calling and self._calling.pop() is not module:
            pass
        if isinstance(out, Tensor) and out.dim() == 3:
            self._made = [out, *self._made[:1]]
        if self._calling or self._inside:
            return
        self._stop()
        kwargs = keyword_arguments(sys._getframe(1))
        call = look.ModuleCall(module, args, kwargs, out, tuple(self._embedded))
        if self.evaluating is not None:
            self.evaluating.note(call)
            return
        self._note_call(call, _place())

    def _note_call(self, call: look.ModuleCall, place: tuple[str, int]) -> None:
        module, out = call.module, call.output
        seen = self.models.setdefault(id(module), _Seen(module, place))
        learns = torch.is_grad_enabled() and any(t.requires_grad for t in tensors_in(out))
        given = _digest((call.args, call.kwargs)) if learns or module.training else 0
        if learns:
            seen.batches.add(given)
        if learns and not self._coasting:
            self.last = call
            seen.first, seen.phase = seen.first or call, self.phase
            seen.learning += 1
            seen.drawn = 0
            seen.in_eval += not (module.training or _mostly_frozen(module))
            seen.in_train += module.training
            self._batches.add(given)
            if self.space is not None:
                self.rows.update(rows_of_call(call))
        elif not learns:
            seen.other += 1
            if module.training and not torch.is_grad_enabled():
                if given in seen.batches and not _drops(module):
                    return  # a monitor: statistics of the batch that it learns from
                seen.draws = seen.draws + 1 if given == seen.drawn else 1
                seen.drawn, seen.evaluation = given, place
                seen.evaluated_in_train += 1 if seen.draws < DRAWS else 0
                if seen.draws == DRAWS:  # as Monte Carlo dropout makes them
                    seen.evaluated_in_train -= DRAWS - 1

    # ------------------------------------------------------------ losses and gradients

    def _watched_loss(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            again, self._in_loss = self._in_loss, True  # a tracer hands it on to itself
            try:
                value = function(*args, **kwargs)
            finally:
                self._in_loss = again
            wanted = self._closely
            if wanted and torch.is_grad_enabled() and not (self._inside or again):
                try:
                    with torch._C.DisableTorchFunction():
                        given = signature.bind(*args, **kwargs)
                        given.apply_defaults()
                        self.losses.append(self._loss_call(name, given.arguments, value))
                except Exception:  # what cannot be described must not stop the run
                    self.not_seen.add(f"the arguments of {name}")
            return value

        return watched

    def _current_call(self) -> look.ModuleCall | None:
        """The call that a loss is made in, as far as it went, or the one before it."""
        if not self._calling:
            return self.last
        return look.ModuleCall(self._calling[0], (), {}, tuple(self._made), tuple(self._embedded))

    def _loss_call(self, name: str, given: dict[str, Any], value: Tensor) -> LossCall:
        if name == "ctc_loss":
            given = {"input": given["log_probs"], "target": given["targets"], **given}
        scores, target = given["input"].detach(), given["target"].detach()
        call, ignored = self._current_call(), given.get("ignore_index", -100)
        several = name in ("cross_entropy", "nll_loss") and scores.dim() > 1
        found = look.align(scores, target, ignored, call) if several else look.Alignment()
        if name == "ctc_loss":
            found = look.counted_blanks(target, given["target_lengths"], given["blank"])
            if not found.blank:
                found = look.counted_tails(target, given["target_lengths"])
        if name in (*PAIRED, "kl_div"):
            probable = False
        elif name == "ctc_loss":
            probable = look.sum_to_one(scores.movedim(-1, 1))
        elif not several:
            probable = bool(((scores > 0) & (scores < 1)).all())
        else:
            probable = look.sum_to_one(scores)
        reduction = given.get("reduction", "mean")
        file, line = _place()
        return LossCall(
            step=self.done,
            name=name,
            file=file,
            line=line,
            shape=tuple(scores.shape),
            target_shape=tuple(target.shape),
            value=float(value.detach()) if value.numel() == 1 else None,
            classes=scores.shape[1] if several else 0,
            reduction=reduction,
            probabilities=probable,
            log_probabilities=(several or name in ("kl_div", "ctc_loss"))
            and (
                look.are_log_probabilities(scores if several else scores.movedim(-1, 1))
                or (name == "kl_div" and look.are_log_probabilities(scores))
            ),
            below=name == "kl_div" and not given["log_target"] and bool((target < -1e-4).any()),
            none_positive=several and not bool((scores > 0).any()),
            **found._asdict(),
        )

    def _watched_backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def backward(loss: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._inside:  # handed on by a tracer
                return function(loss, *args, **kwargs)
            self._note_backward(loss, bool(kwargs.get("retain_graph")))
            result = self._run_backward(partial(function, loss, *args, **kwargs))
            self._end_own_backward(None)
            return result

        return backward

    def _watched_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def grad(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            loss, inputs = given["outputs"], given["inputs"]
            first = loss if isinstance(loss, Tensor) else next(iter(loss), None)
            inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
            step = self._is_own and not (self._inside or given.get("create_graph"))
            scalar = first is not None and first.numel() == 1
            if not (step and scalar and all(t.is_leaf for t in inputs)):
                return function(*args, **kwargs)
            self._note_backward(first, bool(given.get("retain_graph")), inputs)
            result = self._run_backward(partial(function, *args, **kwargs))
            self._end_own_backward(result)
            return result

        return grad

    @property
    def _is_own(self) -> bool:
        """Whether no optimizer was seen; one may be older than the watch."""
        return not (self.optimizers or self._by_optimizer)

    @_unrecorded
    def _end_own_backward(self, gradients: Iterable[Tensor | None] | None) -> None:
        if self._is_own:
            self._own.end_backward(gradients)
            self.after_own_backward()

    def _watched_autograd(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            first = tensors if isinstance(tensors, Tensor) else next(iter(tensors), None)
            if self._inside or not isinstance(first, Tensor):
                return function(tensors, *args, **kwargs)
            self._note_backward(first, bool(kwargs.get("retain_graph")))
            return self._run_backward(partial(function, tensors, *args, **kwargs))

        return backward

    def _run_backward(self, run: Callable[[], Any]) -> Any:
        tape, self._inside = self.tape, True
        if tape is not None:
            tape.paused = True
        try:
            return run()
        finally:
            self._inside = False
            if tape is not None:
                tape.paused = False

    @property
    def _closely(self) -> bool:
        """Whether everything of this step is looked at."""
        number = self.done - self.limit + self._steps
        return not self._coasting and (number < CLOSELY or number % 5 == 0)

    @_unrecorded
    def _note_backward(
        self, loss: Tensor, kept: bool, inputs: Iterable[Tensor] | None = None
    ) -> None:
        place = _place()
        if (
            self._is_own
            and not self._coasting
            and (step := self._own.begin_backward(loss, place, inputs))
        ):
            self.steps.append(step)
        self._stop()
        if self._coasting:
            return
        self._stale |= self._foreign  # what the other's loss left, this one is added to
        self._foreign = {}
        self._forget_cleared()
        if self.tape is not None:
            self.tape.losses.append(loss)
        if self.gradients is not None and self.done == self.limit - 1:
            self.gradients.on_backward(loss)
        value = float(loss.detach()) if loss.numel() == 1 else None
        call = BackwardCall(step=self.done, file=place[0], line=place[1], value=value, kept=kept)
        self.backwards.append(call)
        self._alive.append((self.done, place, weakref.ref(loss)))
        parameters = [p for other in self._optimizers() for p in _parameters_of(other)]
        sums = [float(p.detach().double().sum()) for p in parameters[:SAMPLED]]
        moved, self._sums = sums != self._sums, sums
        for events in self._by_optimizer.values():
            again = moved and "backward" in events
            events.extend(["moved"] * again + ["backward"])

    def _optimizers(self) -> Iterator[Optimizer]:
        yield from (optimizer for ref in self._living if (optimizer := ref()) is not None)

    def _is_leftover(self, p: Tensor) -> bool:
        """Whether its gradient is one that a step has used, and no other that was set since."""
        return id(p) in self._stale and self._stale[id(p)][1]() is p.grad

    def _forget_cleared(self) -> None:
        """Gradients that were set to None or zero are no longer those of an earlier step."""
        for key, (p, used) in list(self._stale.items()):
            if p.grad is None or p.grad is not used() or not bool(p.grad.any()):
                del self._stale[key]

    # ------------------------------------------------------------ the loop's other words

    def _watched_event(self, function: Callable[..., Any], event: str) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            mine = self._by_optimizer.get(id(args[0])) if args else None
            for events in [mine] if mine is not None else self._by_optimizer.values():
                events.append(event)
            if event == "clip":
                self._clip_line = _place()[1]
            elif not self._coasting:
                self._cleared = _place()
            return result

        return watched

    def _watched_schedule(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            self._schedulers.add(id(scheduler))
            self.around.know(scheduler, _place())
            if not getattr(scheduler, "_is_initial", False):  # the constructor makes a step as well
                if not self._coasting:
                    self._schedule.append((*_place(), self.done))
                self.around.move(scheduler, _place())
                for events in self._by_optimizer.values():
                    events.append("schedule")
            return function(scheduler, *args, **kwargs)

        return step

    def _watched_optimizer(self, function: Callable[..., None]) -> Callable[..., None]:
        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            function(optimizer, *args, **kwargs)
            owned = frozenset(id(p) for p in _parameters_of(optimizer))
            file, line = _place()
            made = OptimizerMade(
                step=self.done,
                kind=type(optimizer).__name__,
                file=file,
                line=line,
                parameters=len(owned),
                known=owned in self._sets,
                groups=tuple(
                    (
                        float(group.get("weight_decay", 0.0)),
                        sum(p.dim() > 1 for p in group["params"]),
                        sum(p.dim() < 2 for p in group["params"]),
                    )
                    for group in optimizer.param_groups
                ),
            )
            if self._coasting and owned not in self._sets:
                self._begin_phase()
            self._sets.append(owned)
            self.optimizers.append(made)
            self.after_optimizer()
            self._by_optimizer[id(optimizer)] = []
            self._living.append(weakref.ref(optimizer))
            if self.tape is not None:
                self.tape.paused = False

        return init

    # ------------------------------------------------------------ steps

    @_unrecorded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._by_optimizer.setdefault(id(optimizer), [])
        closure = next(iter((*args[1:], *kwargs.values())), None)  # args[0] is the optimizer
        self._inside = closure is None  # a closure runs the model itself
        if not self._inside:
            self._by_optimizer[id(optimizer)].append("closure")
        parameters = _parameters_of(optimizer)
        self._owned |= {id(p) for p in parameters}
        self._received |= {id(p) for p in parameters if p.grad is not None and bool(p.grad.any())}
        for p in parameters:
            if id(p) not in self._spreads and p.dim() == 2 and p.numel() <= SNAPSHOT:
                self._spreads[id(p)] = float(p.detach().std()) * p.shape[1] ** 0.5
        small = sum(p.numel() for p in parameters) <= SNAPSHOT
        wanted = small and self._closely
        self._before = {id(p): p.detach().clone() for p in parameters} if wanted else {}

    @_unrecorded
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        if self._coasting:
            self._inside = False
            self._stop()
            return
        parameters = _parameters_of(optimizer)
        graded = [p for p in parameters if p.grad is not None]
        ratios = []
        for p in parameters:
            before = self._before.get(id(p))
            if before is None:
                continue
            change = float((p.detach() - before).norm())
            if change > 0:
                self._moved.add(id(p))
                if not p.requires_grad:
                    self._moved_frozen.add(id(p))
            size = float(before.norm())
            if p.dim() > 1 and size > 0 and p.grad is not None and bool(p.grad.any()):
                ratios.append(change / size)
        events, groups = self._by_optimizer[id(optimizer)], optimizer.param_groups
        norms = [float(p.grad.norm()) for p in graded if p.grad is not None]
        file, line = _place()
        self.steps.append(
            Step(
                number=self.done + 1,
                optimizer=self._ids.setdefault(id(optimizer), len(self._ids)),
                file=file,
                line=line,
                events=tuple(events),
                clip_line=self._clip_line,
                cleared=self._cleared,
                gradient=math.hypot(*norms) if norms else None,
                leftover=any(self._is_leftover(p) for p in graded),
                rate=max((float(g["lr"]) for g in groups), default=0.0),
                update=sorted(ratios)[len(ratios) // 2] if ratios else None,
                decay=max(
                    (g.get("weight_decay", 0.0) for g in optimizer.param_groups), default=0.0
                ),
            )
        )
        events.clear()
        self._stale |= _gradients_of(graded)
        others = (other for other in self._optimizers() if other is not optimizer)
        waiting = (p for other in others for p in _parameters_of(other))
        self._foreign = _gradients_of(waiting)
        self._before, self._inside = {}, False
        if self.space is not None:
            self.space = find_namespace(sys._getframe(2))
        self.around.after_step(self._owned)
        self._stop()

    # ------------------------------------------------------------ what was seen

    def evaluate(self, names: Iterable[str]) -> Iterable[Evaluation]:
        """Call these functions of the script."""
        for name in names:
            self.evaluating = Evaluating(name, dict(self.space or {}), self.rows)
            self.around.started = self.evaluating.note_start
            yield self.evaluating.run()

    def main_model(self) -> _Seen | None:
        """The largest module that was called for gradients, else the largest."""
        found = sorted(
            self.models.values(),
            key=lambda s: (s.learning > 0, sum(p.numel() for p in s.module.parameters())),
        )
        return found[-1] if found else None

    def _trained(self) -> Iterable[nn.Module]:
        """The main model, and the largest that a later phase trained."""
        main = self.main_model()
        later = [s.module for s in self.models.values() if s.phase == self.phase > 1]
        if main is not None:
            yield main.module
        if later:
            last = max(later, key=lambda m: sum(p.numel() for p in m.parameters()))
            if main is None or last is not main.module:
                yield last

    def log(self, crash: str = "", redirected: Iterable[str] = ()) -> TrainingLog:
        main = self.main_model()
        kept, place = self._kept or self._kept_graphs()
        return TrainingLog(
            steps=tuple(self.steps),
            losses=tuple(self.losses),
            backwards=tuple(self.backwards),
            optimizers=tuple(self.optimizers),
            models=tuple(_model(seen) for seen in self.models.values()),
            weights=tuple(w for module in self._trained() for w in self._weights(module)),
            schedule_steps=len(self._schedule),
            schedule_first=self._schedule[0] if self._schedule else None,
            schedulers=len(self._schedulers),
            schedules=tuple(self.around.schedules()),
            loaders=tuple(self.around.loaders()),
            followers=tuple(self.around.followers(main.module if main else None)),
            seeded=self.around.seeded(),
            batches=len(self._batches),
            flagged=tuple(self._flagged()),
            kept_graphs=kept,
            kept_at=place,
            not_seen=tuple(sorted(self.not_seen)),
            redirected=tuple(redirected),
            crash=crash,
        )

    def _flagged(self) -> Iterator[str]:
        """Modules that were given `requires_grad` as a plain attribute, and parameters of which say
        something else."""
        for seen in self.models.values():
            for name, module in seen.module.named_modules():
                asked = vars(module).get("requires_grad")
                if type(asked) is bool and any(
                    p.requires_grad != asked for p in module.parameters()
                ):
                    yield name or type(module).__name__

    def _kept_graphs(self) -> tuple[int, tuple[str, int]]:
        """How many losses of earlier steps hold their graphs: as tensors, or in a running sum."""
        alive = [
            place
            for step, place, ref in self._alive
            if step < self.done - 1 and (loss := ref()) is not None and loss.grad_fn is not None
        ]
        new = (tensor for tensor in _single_results() if id(tensor) not in self._older)
        longest = max((_sum_length(tensor.grad_fn) for tensor in new), default=0)
        place = alive[0] if alive else (self._alive[0][1] if self._alive else ("", 0))
        return max(len(alive), longest), place

    def _weights(self, module: nn.Module) -> Iterable[Weight]:
        kinds = {path: type(inner).__name__ for path, inner in module.named_modules()}
        for name, p in module.named_parameters():
            yield Weight(
                layer=kinds.get(name.rpartition(".")[0], ""),
                spread=self._spreads.get(id(p)),
                name=name,
                shape=tuple(p.shape),
                trainable=p.requires_grad,
                optimized=id(p) in self._owned,
                received=id(p) in self._received or (p.grad is not None and bool(p.grad.any())),
                moved=id(p) in (self._moved if p.requires_grad else self._moved_frozen),
            )


def _single_results() -> Iterator[Tensor]:
    """The numbers that are alive with their graphs."""
    for tensor in gc.get_objects():
        try:
            if type(tensor) is Tensor and tensor.dim() == 0 and tensor.grad_fn is not None:
                yield tensor
        except RuntimeError:  # of a view that was written over, nobody may ask it
            continue


def _sum_length(node: Any) -> int:
    """How many additions a running sum, or average, of losses has on top of each other."""
    length = 0
    for _ in range(3000):
        if node is None or not node.name().startswith(("Add", "Mul", "Div", "Sub")):
            break
        length += node.name().startswith("Add")
        inner = [n for n, _ in node.next_functions if n is not None]
        node = next((n for n in inner if n.name().startswith(("Add", "Mul", "Div", "Sub"))), None)
    return length


def _mostly_frozen(module: nn.Module) -> bool:
    """Whether adapters, or a head, learn on what is kept as it is: eval mode is meant there."""
    sizes = [(p.numel(), p.requires_grad) for p in module.parameters()]
    return 2 * sum(n for n, learns in sizes if not learns) > sum(n for n, _ in sizes)


def _gradients_of(parameters: Iterable[Tensor]) -> _Held:
    """The parameters with a gradient that is not zero everywhere."""
    return {
        id(p): (p, weakref.ref(p.grad))
        for p in parameters
        if p.grad is not None and bool(p.grad.any())
    }


def _parameters_of(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _drops(module: nn.Module, kinds: tuple[type, ...] = MODAL[:1]) -> bool:
    """Whether it has layers of these kinds that differ by the mode."""
    layers = (m for m in module.modules() if isinstance(m, kinds))
    return any((getattr(m, "p", 1.0) or 0.0) > 0 for m in layers)


def _model(seen: _Seen) -> Model:
    return Model(
        kind=type(seen.module).__name__,
        file=seen.place[0],
        line=seen.place[1],
        learning_calls=seen.learning,
        other_calls=seen.other,
        learned_in_eval=seen.in_eval,
        learned_in_train=seen.in_train,
        evaluated_in_train=seen.evaluated_in_train,
        evaluation_file=seen.evaluation[0],
        evaluation_line=seen.evaluation[1],
        drops=_drops(seen.module, MODAL),
    )


def _place() -> tuple[str, int]:
    """File and line of the script that is running; none where only attnlab and PyTorch run."""
    return _shown(sys._getframe(2))


def _shown(frame: FrameType) -> tuple[str, int]:
    code, line, _ = user_location(frame, {})
    if code is None or is_library_code(code.co_filename):
        return "", 0
    return display_path(code.co_filename), line


def _digest(given: Any) -> int:
    """A number that is the same for equal batches; under a transform there are no numbers."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return 0
    parts = [
        (tuple(t.shape), float(t.detach().double().sum()), t.detach().flatten()[:8].tolist())
        for t in tensors_in(given)
        if t.numel()
    ]
    return hash(repr(parts))

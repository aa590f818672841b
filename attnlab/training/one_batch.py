"""Learn one batch again and again: with the settings of a script, then with usual ones."""

from __future__ import annotations

import copy
import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam, Optimizer

from attnlab.records.training import OneBatch
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import first_line
from attnlab.training.log import TrainingLog
from attnlab.training.tape import Tape

LEARNED, BY_HEART = 0.25, 0.02  # of the first loss: what is left then
MOST, FEWEST = 3000, 60  # steps
SHOWN = 60  # losses of a curve
USUAL = 1e-3  # the learning rate of Adam that most models learn one batch with
FALLING = 0.97  # of the losses before: a curve that ends below that still falls
ALONE = "Adam without dropout and decay"
Losses = Callable[[bool], Tensor]


def learn_recorded(tape: Tape, optimizer: Optimizer, seconds: float) -> Iterator[OneBatch]:
    """Learn the step on the tape; the script's weights are put back afterwards."""
    if not tape.losses or not tape.calls:
        return
    reached = [(w.detach().clone(), w.requires_grad) for w in tape.weights]
    tape.rewind()
    for group in optimizer.param_groups:  # schedules begin low, and keep here what they lead to
        known = (group["lr"], group.get("initial_lr", 0.0), group.get("max_lr", 0.0))
        group["lr"] = max(float(rate) for rate in known)
    rate = max(float(group["lr"]) for group in optimizer.param_groups)
    own = f"the script's {type(optimizer).__name__}, learning rate {rate:.3g}"
    trained = [w for w in tape.weights if w.requires_grad]
    try:
        for how, make, drops in ((own, None, True), (ALONE, Adam, False)):
            tape.rewind()
            optimizer.state.clear()
            chosen = make(trained, lr=USUAL) if make else optimizer
            run = _learn(tape.loss, chosen, drops, seconds / 2, how)
            yield run
            if run.learned:
                return
    finally:
        tape.before = reached
        tape.rewind()


def learn_with_module(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], seconds: float
) -> TrainingLog:
    """What became of a batch that a copy of a module learned."""
    try:
        return TrainingLog(one_batch=(_learn_with_copy(module, args, kwargs, seconds),))
    except Exception as error:  # the module is asked for what it may not be made for
        why = f"{type(error).__name__}: {first_line(error)}"
        return TrainingLog(not_seen=(f"overfitting one batch: {why}",))


def _learn_with_copy(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], seconds: float
) -> OneBatch:
    """Towards a target of ours, where the module returns no loss."""
    made = copy.deepcopy(module).train()
    trained = [p for p in made.parameters() if p.requires_grad]
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        measure, aim = _measure(made, args, kwargs)

        def loss(drops: bool) -> Tensor:
            made.train(drops)
            return measure(made(*args, **kwargs))

        return _learn(loss, Adam(trained, lr=USUAL), False, seconds, f"Adam, {aim}")


def _measure(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[[Any], Tensor], str]:
    """A loss of what the module returns, and what it asks for."""
    outs = [t for t in tensors_in(module(*args, **kwargs)) if t.requires_grad]
    if not outs:
        raise ValueError("nothing that it returns has a gradient")
    alone = [number for number, out in enumerate(outs) if out.numel() == 1]
    if alone:
        return lambda o: _graded(o)[alone[0]].sum(), "towards the loss that it returns"
    ids = any(not t.is_floating_point() for t in tensors_in((args, kwargs)))
    first = outs[0].detach()
    if ids and first.dim() == 3:
        wanted = torch.randint(first.shape[-1], (first[..., 0].numel(),))
        return (
            lambda o: F.cross_entropy(_graded(o)[0].flatten(0, 1), wanted),
            f"towards random ids among {first.shape[-1]}",
        )
    other = copy.deepcopy(module).eval()
    with torch.no_grad():
        for p in other.parameters():
            p.add_(torch.randn_like(p), alpha=float(p.std(unbiased=False)) or 0.1)
        goal = next(t for t in tensors_in(other(*args, **kwargs)) if t.shape == first.shape)
    spread = goal.var() + 1e-12
    return (
        lambda o: F.mse_loss(_graded(o)[0], goal) / spread,
        "towards what other weights of it return",
    )


def _graded(out: Any) -> list[Tensor]:
    return [t for t in tensors_in(out) if t.requires_grad]


def _learn(loss: Losses, optimizer: Optimizer, drops: bool, seconds: float, how: str) -> OneBatch:
    values: list[float] = []
    started = time.monotonic()

    def measure() -> Tensor:
        optimizer.zero_grad()
        with torch.enable_grad():
            value = loss(drops)
            value.backward()  # type: ignore[no-untyped-call]
        values.append(float(value.detach()))
        return value

    wants = inspect.signature(optimizer.step).parameters.get("closure")
    closed = wants is not None and wants.default is inspect.Parameter.empty
    for _ in range(MOST):
        if closed:
            optimizer.step(measure)  # type: ignore[arg-type]
        else:
            measure()
            optimizer.step()
        late = time.monotonic() - started > seconds
        if not math.isfinite(values[-1]) or late or _share_left(values) <= BY_HEART:
            break
    thin = max(len(values) // SHOWN, 1)
    return OneBatch(
        how=how,
        steps=len(values),
        losses=(*values[:-1:thin], values[-1]),
        learned=_share_left(values) <= LEARNED,
        falling=_falls(values),
        usual=how.startswith(Adam.__name__),
    )


def _share_left(values: list[float]) -> float:
    """Of the first loss; the mean of the last few, as dropout lets them jump."""
    last = sum(values[-3:]) / 3
    return last / values[0] if values[0] > 0 and last >= 0 else 1.0


def _falls(values: list[float]) -> bool:
    part = len(values) // 10
    if len(values) < FEWEST:
        return True
    before, last = values[-2 * part : -part], values[-part:]
    return sum(last) < FALLING * sum(before)

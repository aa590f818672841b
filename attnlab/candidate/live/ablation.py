"""Switch off each part of a model in turn, and see what that changes on a batch of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.candidate.live.batch import CannotTry, Changes, Output, undisturbed
from attnlab.candidate.live.bench import Bench
from attnlab.candidate.live.parts import Part, Parts
from attnlab.candidate.live_properties import Hints, make_bench
from attnlab.candidate.load import FunctionModule
from attnlab.candidate.switches import SwitchRecorder, passing
from attnlab.candidate.value_recorder import ValueRecorder
from attnlab.records.ablation import Ablation, AblationReport
from attnlab.tracer.raw_trace import display_path, first_line
from attnlab.tracer.recorder import module_names

SOME = 3  # positions, of which one may be changed
MOST = 80  # parts that are tried
NOTHING = 1e-9  # of the output: no more than rounding
SAYS_NOTHING = "switching it off changes nothing"
IN_EVAL = "it drops values in eval mode, too"


@undisturbed()
def ablate(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    targets: Tensor | None = None,
    seconds: float = 0.0,
) -> AblationReport:
    """What each part of `model` does on the batch `model(*args, **kwargs)`; with `targets` also to
    the cross-entropy of its logits. With `seconds` only whether the output changes, and no part
    more once they are over."""
    module = model if isinstance(model, nn.Module) else FunctionModule(model)
    try:
        bench = make_bench(module, args, kwargs, Hints(targets))
    except CannotTry as reason:
        return AblationReport(notes=(str(reason),))
    except Exception as error:
        return AblationReport(notes=(f"the call raised {_told(error)}",))
    outs = bench.before.tensors.values()
    if not outs:
        return AblationReport(notes=("it returns no floating-point numbers",))
    if not all(bool(out.isfinite().all()) for out in outs):
        return AblationReport(notes=("its output is not finite: no change can be measured",))
    return Ablations(bench, targets, seconds).report()


class Ablations:
    """The calls with parts switched off."""

    def __init__(self, bench: Bench, targets: Tensor | None, seconds: float = 0.0) -> None:
        self.bench, self.targets, self.brief = bench, targets, bool(seconds)
        self.ends = time.monotonic() + (seconds or math.inf)
        self.unchanged = Part("module", "")
        self.held = {name: bool(look(self.unchanged)) for name, look in self._looks().items()}
        self.before = {train: self._call(self.unchanged, train=train) for train in (False, True)}

    def report(self) -> AblationReport:
        parts = self._parts()
        tried = [self._tried(part) for part in parts[:MOST] if time.monotonic() < self.ends]
        left = len(parts) - len(tried)
        notes = [f"{left} more parts were not switched off"] if left else []
        if not parts:
            notes.append("no mask, norm, residual, dropout, positions, heads or blocks were found")
        tried.sort(key=lambda row: -(-1.0 if row.change is None else row.change))
        known = bool(self._looks())
        return AblationReport(
            parts=tuple(tried),
            causal=self.held.get("causality") if known else None,
            ordered=self.held.get("order") if known else None,
            loss=self._loss(self.before[False]),
            notes=tuple(notes),
        )

    def _parts(self) -> list[Part]:
        """The parts that one call shows; dropout by a call in train mode."""
        found = self._recorded(train=False)
        drops = [p for p in self._recorded(train=True) if p.kind == "dropout"]
        return [*(p for p in found if p.kind != "dropout"), *drops]

    def _recorded(self, train: bool) -> list[Part]:
        live, layout = self.bench.live, self.bench.layout
        live.forget()
        recorder = ValueRecorder({})
        recorder.names = module_names(live.model)
        live.call({}, watch=recorder, train=train)
        data = [leaf.value for leaf in layout.data or live.leaves]
        return Parts(recorder.values, data, layout.samples).find(live.model)

    def _call(self, part: Part, changes: Changes | None = None, train: bool = False) -> Output:
        live = self.bench.live
        with passing([live.model.get_submodule(name) for name in part.modules]):
            return live.call(changes or {}, watch=SwitchRecorder(part.switches), train=train)

    def _tried(self, part: Part) -> Ablation:
        file = display_path(part.file) if part.file else ""
        row = Ablation(kind=part.kind, what=part.what, file=file, line=part.line, times=part.times)
        train = part.kind == "dropout"
        try:
            after = self._call(part, train=train)
            change = _change(self.before[train], after)
            broke = () if train else self._broken(part)
        except Exception as error:  # what is left may not fit together
            return replace(row, change=None, message=_told(error))
        message = SAYS_NOTHING if change <= NOTHING and not train else ""
        if train and _change(self.before[False], self._call(part)) > NOTHING:
            message = IN_EVAL
        if not all(bool(t.isfinite().all()) for t in after.tensors.values()):
            broke = (*broke, "finite")
        found = replace(row, change=change, broke=broke, message=message)
        return replace(found, is_finding=bool(message), loss=None if train else self._loss(after))

    def _broken(self, part: Part) -> tuple[str, ...]:
        looks = self._looks().items()
        return tuple(name for name, look in looks if self.held[name] and not look(part))

    def _loss(self, out: Output) -> float | None:
        """What it returns as its loss, or the cross-entropy of its logits with the targets."""
        own = next((t for t in out.tensors.values() if not t.dim()), None)
        if own is not None:
            return float(own)
        logits, targets = out.main, self.targets
        if targets is None or targets.is_floating_point():
            return None
        if not logits.dim() or logits.numel() != targets.numel() * logits.shape[-1]:
            return None
        return float(F.cross_entropy(logits.flatten(0, -2), targets.flatten().cpu()))

    # ------------------------------------------------------------ what held before

    def _looks(self) -> dict[str, Any]:
        """Properties of positions, where the output has them."""
        if self.brief:
            return {}
        bench = self.bench
        rows = bench.layout.by_position(bench.before.main) if bench.before.main.dim() else None
        fits = rows is not None and bench.layout.length >= SOME and bench.layout.targets
        return {"causality": self._is_causal, "order": self._sees_order} if fits else {}

    def _is_causal(self, part: Part) -> bool:
        layout = self.bench.layout
        for start in (layout.length - 1, 1):
            changes = layout.change_positions(layout.targets, start, layout.length)
            if self._moved(part, changes)[:, :start].any():
                return False
        return True

    def _sees_order(self, part: Part) -> bool:
        """Whether it matters to the positions after them that two inputs change places."""
        layout = self.bench.layout
        return bool(self._moved(part, layout.swap_positions(layout.targets, 0, 1))[:, 2:].any())

    def _moved(self, part: Part, changes: Changes) -> Tensor:
        rows = [self.bench.layout.by_position(self._call(part, c).main) for c in ({}, changes)]
        if rows[0] is None or rows[1] is None:
            raise CannotTry("the output has no positions")
        return self.bench.moved(rows[0], rows[1])


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _change(before: Output, after: Output) -> float:
    """RMS of the difference, in RMS of the output; infinite where numbers are not finite."""
    gaps, sizes = [], []
    for name, old in before.tensors.items():
        new = after.tensors.get(name)
        if new is None or new.shape != old.shape:
            raise CannotTry(f"{name} has another shape without it")
        gaps.append((new - old).flatten())
        sizes.append(old.flatten())
    gap, size = (torch.cat(each).square().mean().sqrt().item() for each in (gaps, sizes))
    found = gap / max(size, 1e-30)
    return found if math.isfinite(found) else math.inf

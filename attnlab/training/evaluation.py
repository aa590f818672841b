"""Call an evaluating function of a script after the steps that were watched, and note what it does.

Its arguments are variables of the script that have their names: of the functions that were running
at its last step, the innermost first, and of the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler

from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import display_path, first_line
from attnlab.tracer.recorder import is_library_code
from attnlab.training.log import Evaluation
from attnlab.training.scores import ModuleCall

ROWS = 4096  # of a call that are told apart


def rows_of_call(call: ModuleCall) -> Iterator[int]:
    """A number for each sample of the first input of a call."""
    first = next((t for t in tensors_in((call.args, call.kwargs)) if t.dim()), None)
    if first is not None and first.device.type == "cpu":
        for row in first.detach()[:ROWS]:
            yield hash((row.shape, bytes(row.contiguous().view(-1).view(torch.uint8).tolist())))


def find_namespace(frame: FrameType | None) -> dict[str, Any]:
    """The variables of a script that runs: inner functions hide outer ones."""
    found: dict[str, Any] = {}
    while frame is not None:
        if not is_library_code(frame.f_code.co_filename):
            found = {**frame.f_globals, **frame.f_locals, **found}
        frame = frame.f_back
    return found


class Evaluating:
    """One call of the function `name`, or of the expression that it is."""

    def __init__(self, name: str, space: dict[str, Any], trained: set[int]) -> None:
        """`trained` are the rows that the watched steps learned from."""
        self.name, self.space, self.trained = name, space, trained
        self.modules: dict[int, nn.Module] = {}
        self.calls = self.in_train = self.graded = 0
        self.rows: set[int] = set()
        self.starts: dict[int, int] = {}

    def note(self, call: ModuleCall) -> None:
        """An outermost call of a module."""
        self.modules[id(call.module)] = call.module
        self.calls += 1
        self.in_train += call.module.training
        self.graded += any(t.requires_grad for t in tensors_in(call.output))
        self.rows.update(rows_of_call(call))

    def note_start(self, loader: DataLoader[Any]) -> None:
        if isinstance(loader.sampler, RandomSampler):
            self.starts[id(loader)] = self.starts.get(id(loader), 0) + 1

    def run(self) -> Evaluation:
        held = [m for m in self.space.values() if isinstance(m, nn.Module)]
        modes = [(m, m.training) for m in held]
        weights = [p for m in held for p in m.parameters()]
        before = [_sum(p) for p in weights]
        error, place = "", ("", 0)
        try:
            call, place = self._call()
            call()
        except (Exception, SystemExit) as raised:
            error = f"{type(raised).__name__}: {first_line(raised)}"
        changed = [_sum(p) for p in weights] != before
        return Evaluation(
            name=self.name,
            file=place[0],
            line=place[1],
            kind=", ".join(dict.fromkeys(type(m).__name__ for m in self.modules.values())),
            calls=self.calls,
            in_train=self.in_train,
            graded=self.graded,
            drops=any(_drops(m) for m in self.modules.values()),
            left_in_eval=any(was and not m.training for m, was in modes),
            changes_weights=changed,
            rows=len(self.rows),
            trained_rows=len(self.rows & self.trained),
            shuffled_starts=max(self.starts.values(), default=0),
            error=error,
        )

    def _call(self) -> tuple[Callable[[], Any], tuple[str, int]]:
        code = compile(self.name, "--eval", "eval")
        function = eval(self.name.partition("(")[0], self.space)  # noqa: S307 - the user's own words
        told = getattr(inspect.unwrap(function), "__code__", None)
        place = (display_path(told.co_filename), told.co_firstlineno) if told else ("", 0)
        if "(" in self.name:
            return lambda: eval(code, self.space), place  # noqa: S307
        wanted = inspect.signature(function).parameters.values()
        needed = [
            p.name
            for p in wanted
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if missing := [name for name in needed if name not in self.space]:
            raise LookupError(
                f"it takes {missing[0]}, and the script has no variable of that name: "
                f'--eval "{self.name}({", ".join(needed)})" with values of your own'
            )
        return lambda: function(*(self.space[name] for name in needed)), place


def _sum(weight: Tensor) -> str:
    return repr(float(weight.detach().double().sum()))  # as text NaN equals itself


def _drops(module: nn.Module) -> bool:
    kinds = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
    held = (m for m in module.modules() if isinstance(m, kinds))
    return any((getattr(m, "p", 1.0) or 0.0) > 0 for m in held)

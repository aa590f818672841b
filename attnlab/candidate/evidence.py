"""What can be measured of a program that trains: the evidence of an incident, as short texts.

Everything is looked at from outside: the optimizer's hooks give gradients, updates and rates, a
torch function mode the softmaxes, and the batches that the model was fed are kept to ask it again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnlab.candidate.process_state import set_seed
from attnlab.candidate.program import CandidateProgram, TrainingWatch, named_weights
from attnlab.records.program import FORWARD

SOFTMAX: set[Any] = {F.softmax, torch.softmax, Tensor.softmax}
SAMPLE, QUERY, HEAD = 2, 3, 0  # whose attention is asked for
FEW = 6  # parts of the model that are named


class Softmaxes(TorchFunctionMode):
    """Keeps what goes into square softmaxes and comes out of them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in SOFTMAX and out.dim() > 2:
            self.found.append((args[0].detach(), out.detach()))
        return out


class Evidence(TrainingWatch):
    """Watches a training run from outside."""

    def __init__(self, program: CandidateProgram) -> None:
        super().__init__(program.model, program.optimizer)
        self.program = program
        self.steps: list[tuple[float, dict[str, float]]] = []  # rate, gradient norms by part
        self.first = {n: p.detach().clone() for n, p in named_weights(program.model).items()}
        self.batch: tuple[Any, ...] | None = None

    def _note_update(self, *_: object) -> None:
        super()._note_update()
        self.steps.append((self.rates[-1], _norms(self.program.model, lambda p: p.grad)))

    def _note_mode(self, model: nn.Module, inputs: Any) -> None:
        super()._note_mode(model, inputs)
        first = self.batch is None and torch.is_grad_enabled()
        if first and all(isinstance(each, Tensor) for each in inputs):
            self.batch = tuple(each.detach().clone() for each in inputs)

    def measure(self) -> dict[str, str]:
        """All measurements that can be made, by what one asks for."""
        found: dict[str, str] = {}
        for measurement in (self._of_steps, self._of_weights, self._of_batch, self._of_entries):
            with suppress(Exception):  # a broken program may not answer
                found.update(measurement())
        return found

    def _of_steps(self) -> Iterator[tuple[str, str]]:
        if not self.steps:
            return
        rates = [rate for rate, _ in self.steps]
        places = sorted({0, 1, 2, len(rates) // 2, len(rates) - 1} & set(range(len(rates))))
        shown = ", ".join(f"{rates[n]:.3g} in step {n + 1}" for n in places)
        yield "learning rate over the run", f"{shown}, of {len(rates)} steps"
        for number in {0, len(self.steps) - 1}:
            norms = ", ".join(f"{part} {norm:.3g}" for part, norm in self.steps[number][1].items())
            yield f"gradient norms, step {'1' if number == 0 else 'last'}", norms
        totals = [sum(n * n for n in norms.values()) ** 0.5 for _, norms in self.steps[:5]]
        yield "gradient norm in the first steps", ", ".join(f"{total:.3g}" for total in totals)

    def _of_weights(self) -> Iterator[tuple[str, str]]:
        moved = _norms(self.program.model, lambda p: p.detach(), self.first)
        yield "how far weights moved in all", ", ".join(f"{n} {d:.3g}" for n, d in moved.items())
        named = named_weights(self.program.model)
        still = [name for name, p in named.items() if torch.equal(p.detach(), self.first[name])]
        yield "parameters that never moved", ", ".join(still[:8]) or "none"
        if modes := self.training_modes:
            share = f"{sum(modes)} of {len(modes)}"
            yield "mode of the model in training", f"train mode in {share} forward passes"

    def _of_batch(self) -> Iterator[tuple[str, str]]:
        if self.batch is None:
            return
        self.program.set_mode(training=False)
        softmaxes = Softmaxes()
        with torch.no_grad():
            with softmaxes:
                whole = self._call(self.batch)
            again = self._call(self.batch)
            alone = self._call([each[:1] for each in self.batch])
            later = self._call([_with_last_changed(each) for each in self.batch])
        yield "logits of two equal calls in eval mode", f"differ by {_far(whole, again):.3g}"
        yield "logits of sample 0 alone and in its batch", _compared(whole[:1], alone)
        if whole.dim() == 3:
            text = f"earlier logits change by {_far(whole[:, :-1], later[:, :-1]):.3g}"
            yield "logits when only the last token is another", text
        size = f"mean {whole.mean():.3g}, standard deviation {whole.std():.3g}"
        yield "size of the logits", f"{size}, largest {whole.max():.3g}"
        if softmaxes.found:
            yield from _of_attention(*softmaxes.found[0])

    def _call(self, inputs: Sequence[Tensor]) -> Tensor:
        program = self.program
        call = partial(program.call, FORWARD) if FORWARD in program.entries else operator.call
        return torch.as_tensor(call(program.model, *inputs))

    def _of_entries(self) -> Iterator[tuple[str, str]]:
        program = self.program
        if "evaluate" in program.entries:
            program.set_mode(training=True)
            values = [float(program.call("evaluate", program.model)) for _ in range(2)]
            yield "what evaluate returns, called twice", ", ".join(f"{v:.4g}" for v in values)
            training = getattr(program.model, "training", None)
            yield "mode of the model after evaluate", "train" if training else "eval"


def _norms(
    model: Any, of: Callable[[Tensor], Tensor | None], less: dict[str, Tensor] | None = None
) -> dict[str, float]:
    """The norm of a tensor of each parameter, by the parts of the model."""
    squares: dict[str, float] = {}
    for name, parameter in named_weights(model).items():
        tensor = of(parameter)
        if tensor is not None:
            tensor = tensor.detach() - (less[name] if less else 0.0)
        words = name.split(".")
        part = ".".join(words[: 2 if words[1:2] and words[1].isdigit() else 1])
        square = 0.0 if tensor is None else float(tensor.double().square().sum())
        squares[part] = squares.get(part, 0.0) + square
    return {part: total**0.5 for part, total in list(squares.items())[:FEW]}


def _of_attention(scores: Tensor, weights: Tensor) -> Iterator[tuple[str, str]]:
    sample = weights[min(SAMPLE, len(weights) - 1)]
    matrix = sample if sample.dim() == 2 else sample[HEAD]
    row = matrix[min(QUERY, len(matrix) - 1)]
    shown = " ".join(f"{w:.2f}" for w in row[:10].tolist()) + (" ..." if len(row) > 10 else "")
    yield f"attention of query {QUERY}, head {HEAD}, sample {SAMPLE}", shown
    sums = weights.sum(-1)
    yield "sums of the attention rows", f"{sums.min():.3g} to {sums.max():.3g}"
    finite = scores[scores.isfinite() & (scores > -1e4)]
    yield "scores before softmax", f"{finite.min():.3g} to {finite.max():.3g}"
    seen = (matrix > 0).sum(-1)[:8].tolist()
    text = f"queries 0 to {len(seen) - 1} give weight to {', '.join(map(str, seen))} keys"
    yield f"mask of sample {SAMPLE}", f"{text} of {matrix.shape[-1]}"
    if matrix.shape[0] == matrix.shape[1]:
        yield "largest weight on a later key", f"{weights.triu(1).max():.3g}"


def _with_last_changed(tensor: Tensor) -> Tensor:
    changed = tensor.clone()
    if tensor.dim() >= 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool:
        changed[:, -1] = changed[:, 0]
    return changed


def _compared(one: Tensor, other: Tensor) -> str:
    if one.shape != other.shape:
        return f"have the shapes {tuple(one.shape)} and {tuple(other.shape)}"
    return f"differ by {_far(one, other):.3g}"


def _far(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def train_and_measure(program: CandidateProgram, seed: int, steps: int) -> dict[str, Any]:
    """Train as `python train.py` does; the losses, and all measurements."""
    set_seed(seed)
    program.make()
    with Evidence(program) as evidence:
        losses = [float(loss) for loss in program.train(steps)]
    return {"losses": losses, "evidence": evidence.measure()}

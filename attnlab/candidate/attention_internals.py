"""The insides of attention, seen by its operations: scores, and the weights that mix values.

A softmax's output is followed through whatever keeps its shape (dropout, a mask, a cast) until a
product takes it as weights. What is written without a softmax, or without a product, is not seen.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

LEFT = ("matmul", "bmm", "__matmul__")
SOFTMAX = ("softmax", "_softmax")
FUSED = "scaled_dot_product_attention"


class AttentionRecorder(TorchFunctionMode):
    """Watches one forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.fused: list[Tensor] = []  # scores of fused kernels
        self.mixed: list[tuple[Tensor, int]] = []  # weights, and the axis that was summed over
        self.weights: dict[int, tuple[Tensor, Tensor]] = {}  # id -> weights (kept alive), scores
        self.divided: set[int] = set()  # weights whose sum was taken: they are normalised later

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in SOFTMAX and isinstance(out, Tensor):
            self.weights[id(out)] = (out, args[0] if args else kwargs["input"])
        elif name == FUSED:
            self.fused.append(_fused(*args, **kwargs))
        elif name in LEFT:
            self._mixes(args[0], -1)
            self._mixes(args[1] if len(args) > 1 else None, -2)
        elif name == "einsum":
            self._einsum(args)
        else:
            self._follow(name, args, kwargs, out)
        return out

    def internals(self) -> dict[str, Any]:
        mixed = [(w, axis) for w, axis in self.mixed if not _escaped(w)]
        kept = [(w, axis) for w, axis in mixed if id(w) not in self.divided]
        scores = [*self.fused, *(self.weights[id(w)][1] for w, _ in mixed)]
        scores = [t for t in scores if not _escaped(t)]
        return {
            "scores": {str(i): t.detach() for i, t in enumerate(scores)},
            "sums": {str(i): w.detach().sum(axis) for i, (w, axis) in enumerate(kept)},
            "lowest": min((float(w.min()) for w, _ in kept if w.numel()), default=0.0),
        }

    def _follow(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        for given in (*args, *kwargs.values()):
            known = self.weights.get(id(given)) if isinstance(given, Tensor) else None
            if known is None:
                continue
            if name in ("sum", "norm"):
                self.divided.add(id(given))
            elif isinstance(out, Tensor) and out.shape == given.shape:
                self.weights[id(out)] = (out, known[1])

    def _einsum(self, args: tuple[Any, ...]) -> None:
        """The weights' summed axis is the one letter that does not come out."""
        equation, tensors = args[0], args[1:]
        if not isinstance(equation, str) or "->" not in equation or "." in equation:
            return
        terms, _, result = equation.replace(" ", "").partition("->")
        for term, tensor in zip(terms.split(","), tensors, strict=False):
            gone = [axis for axis, letter in enumerate(term) if letter not in result]
            if len(gone) == 1:
                self._mixes(tensor, gone[0])

    def _mixes(self, weights: Any, axis: int) -> None:
        if isinstance(weights, Tensor) and id(weights) in self.weights:
            self.mixed.append((weights, axis))


def _fused(query: Tensor, key: Tensor, *_: Any, **options: Any) -> Tensor:
    """The scores of a fused kernel, before its mask."""
    scale = options.get("scale")
    groups = query.shape[1] // key.shape[1] if options.get("enable_gqa") else 1
    key = key.repeat_interleave(groups, 1) if groups > 1 else key
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores: Tensor = scale * (query @ key.mT)
    return scores


def record_internals(call: Any) -> dict[str, Any]:
    """Scores, sums and the lowest of the weights that one call makes: see `AttentionInternals`."""
    recorder = AttentionRecorder()
    with torch.no_grad(), recorder:
        call()
    return recorder.internals()


def _escaped(t: Tensor) -> bool:
    """Whether it belongs to a torch.func transform that has ended: nothing can be read of it."""
    try:
        t.detach().flatten()[:1].tolist()
    except Exception:  # whatever it says
        return True
    return False

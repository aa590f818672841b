"""Rotary positions turn pairs of features, and a turn keeps the length of what it turns."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.watching import Place, place_of_call

PRODUCTS = {"mul", "__mul__", "__rmul__", "multiply"}
SUMS = {"add", "__add__", "__radd__"}
CLOSE = 1e-4
LARGEST = 1 << 20  # elements that are looked at


def norm_kept(bench: Bench) -> None:
    """`x * cos + rotate(x) * sin` has the norms of x."""
    with_sums = Turns()
    bench.live.call({}, watch=with_sums)
    if not with_sums.seen:
        raise NotApplicable("nothing in it is multiplied by cosines and sines")
    if with_sums.broken is not None:
        place, gap = with_sums.broken
        raise Broken(
            f"x * cos + turned(x) * sin changes the norm of x by up to {gap:.0%}, which a rotation "
            "does not: the two features of a pair do not stand where their angles stand",
            place,
        )


class Turns(TorchFunctionMode):
    """Finds sums `a * c + b * s` with c^2 + s^2 = 1 and b the features of a in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.broken: tuple[Place, float] | None = None
        self.products: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # the product and its factors

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        pair = [a for a in args[:2] if isinstance(a, Tensor) and a.is_floating_point()]
        if len(pair) < 2 or not isinstance(out, Tensor) or out.numel() > LARGEST:
            return out
        if name in PRODUCTS:
            self.products[id(out)] = (out, pair[0], pair[1])
        elif name in SUMS and all(id(p) in self.products for p in pair):
            self._look(out, self.products[id(pair[0])][1:], self.products[id(pair[1])][1:])
        return out

    def _look(self, out: Tensor, one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> None:
        for a, c in (one, one[::-1]):
            for b, s in (other, other[::-1]):
                if a.shape == b.shape == out.shape and c.shape == s.shape and _is_turn(a, c, b, s):
                    self.seen += 1
                    before = a.norm(dim=-1)
                    gap = ((out.norm(dim=-1) - before).abs() / before.clamp(min=1e-9)).max().item()
                    if gap > CLOSE and self.broken is None:
                        self.broken = (place_of_call(3), gap)
                    return


def _is_turn(a: Tensor, c: Tensor, b: Tensor, s: Tensor) -> bool:
    """Cosines and sines of one angle, times the same features in two orders."""
    if not s.any() or not torch.allclose(c**2 + s**2, torch.ones_like(c), atol=CLOSE):
        return False
    return torch.allclose(a.abs().sort(-1).values, b.abs().sort(-1).values, atol=CLOSE)

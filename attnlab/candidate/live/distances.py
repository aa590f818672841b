"""What is added to scores by distance alone: it favours what is near, on both sides."""

import inspect
import re
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.watching import HIDDEN, Place, place_of_call, place_of_held
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.recorder import storage_of

SUMS = {"add", "__add__", "__radd__", "__iadd__", "add_"}
MASKINGS = {"masked_fill", "masked_fill_", "where"}
FUSED = "scaled_dot_product_attention"
SHORTEST = 4  # positions of which a line can be told
LARGEST = 1 << 20  # elements
CLOSE = 1e-4


def distance_bias(bench: Bench) -> None:
    """A bias that is linear in the distance falls with it; one for both sides tells them apart."""
    watch = Biases(bench.layout.length)
    bench.live.call({}, watch=watch)
    if not watch.found:
        raise NotApplicable("nothing that depends on distance alone is added to its scores")
    both = "causal" not in bench.promises and not _takes_mask(bench)
    for place, bias, heads, masked in watch.found:
        why = _one_for_all_before(heads) if masked else _wrong(heads, both)
        if why:
            made = watch.distance if "sign" in why else place_of_held(bench.live.model, bias)
            raise Broken(why, made or place)


def _wrong(heads: Tensor, both: bool) -> str:
    """What is wrong with biases (H, S, S) of distances; "" for nothing."""
    before, after = heads[:, -1].flip(-1), heads[:, 0]  # by distance, to the left and to the right
    if _rises(before):
        return (
            f"the bias of a key {before.shape[-1] - 1} positions before its query is "
            f"{before[0, -1]:.3g}, of the query's own position {before[0, 0]:.3g}: it grows with "
            "the distance, so the farthest keys are favoured"
        )
    if both and _rises(after):
        return (
            f"the bias of a key {after.shape[-1] - 1} positions behind its query is "
            f"{after[0, -1]:.3g}, of the query's own position {after[0, 0]:.3g}, and nothing hides "
            "those keys: what lies ahead is favoured the more, the farther it is. A bias for both "
            "sides takes the absolute distance"
        )
    if level := _one_for_all_before(heads):
        return level
    if both and bool((after[:, 1:] == after[:, :1]).all()):
        return (
            "all keys behind a query have the bias of its own position, while those before it are "
            "told apart, and nothing hides them: the buckets are those of causal attention"
        )
    return ""


def _one_for_all_before(heads: Tensor) -> str:
    """What is wrong where biases (H, S, S) tell nothing apart but what lies ahead."""
    if bool((heads[:, -1] == heads[:, -1:, -1]).all()):
        return (
            "all keys before a query have the bias of its own position, while those behind it are "
            "told apart: the distance has the wrong sign, query minus key for key minus query"
        )
    return ""


def _rises(by_distance: Tensor) -> bool:
    """Whether all heads that are lines rise with the distance."""
    steps = by_distance.diff(dim=-1)
    lines = ((steps - steps[:, :1]).abs() <= CLOSE * steps[:, :1].abs()).all(-1) & (
        steps[:, 0] != 0
    )
    return bool(lines.any()) and bool((steps[lines, 0] > 0).all())


def _takes_mask(bench: Bench) -> bool:
    """Whether a mask may come from outside that hides what lies ahead, and no mere padding."""
    names = inspect.signature(bench.live.model.forward).parameters
    return any(re.search(r"^(?!.*(pad|key|valid)).*(mask|causal)", name) for name in names)


class Biases(TorchFunctionMode):
    """Notes what is added to scores of `length` positions, or masked before that, and is the same
    along each diagonal."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length
        self.distance: Place | None = None  # where positions are subtracted
        # The bias, its heads, and whether a mask is to hide some of it.
        self.found: list[tuple[Place, Tensor, Tensor, bool]] = []
        self.made: dict[int, tuple[Place, Tensor]] = {}  # by memory, which is kept

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in SUMS:
            given = list(args[:2])
        elif name == FUSED:
            given = [*args[3:4], kwargs.get("attn_mask")]
        elif name in MASKINGS:
            given = [a for a in args if isinstance(a, Tensor)]
        else:
            given = []
        out = func(*args, **kwargs)
        if not isinstance(out, Tensor) or out.dim() < 2:
            return out
        place = place_of_call() if out.shape[-2:] == (self.length, self.length) else None
        if place and "sub" in name and out.dim() == 2 and not out.is_floating_point():
            self.distance = place
        for one in given if out.dim() > 2 else ():
            heads = self._by_distance(one)
            if heads is not None:
                made = self.made.get(storage_of(one), (place or place_of_call(), one))
                self.found.append((made[0], one, heads, name in MASKINGS))
        if place is not None and storage_of(out) not in map(storage_of, tensors_in(args)):
            self.made[storage_of(out)] = (place, out)
        return out

    def _by_distance(self, bias: Any) -> Tensor | None:
        """(H, S, S) of a bias of distances, without what it hides; None for anything else."""
        square = (self.length, self.length)
        if not isinstance(bias, Tensor) or not bias.is_floating_point() or bias.dim() < 2:
            return None
        if bias.shape[-2:] != square or self.length < SHORTEST or bias.numel() > LARGEST:
            return None
        heads = bias.detach().reshape(-1, *square).double()
        if not bool((heads > HIDDEN).all()):
            return None
        same = torch.equal(heads[:, 1:, 1:], heads[:, :-1, :-1])
        return heads if same and bool((heads != heads[:, :1, :1]).any()) else None

"""Inputs and weights, drawn on the trusted side from one seed."""

import random
from collections.abc import Mapping

import torch
from torch import Tensor

from attnlab.probe.answers import Inputs, Mask
from attnlab.probe.inputs.sizes import tied
from attnlab.records import Contract, Input
from attnlab.sizes import Sizes, measure

GAINS = {"weight", "gain", "gains", "gamma", "scale", "scales", "g", "alpha", "multiplier"}
TURNED = 1.2  # of a normal distribution: from there on gains have the other sign, one in nine
FORBIDDEN = 0.35  # share of keys that a random mask forbids
SMALL = 0.02  # standard deviation of small inputs
STARTS = 5  # of positions, where no longest sequence is known
CARRIES = {"B", "S", "Sq", "Sk", "T", "R", "C"}  # axes of data: a function's weights have none
BEGINS = 0.4  # share of positions with which another segment begins


class Dice:
    """Everything random of one job."""

    def __init__(self, seed: int) -> None:
        self.torch = torch.Generator().manual_seed(seed)
        self.plain = random.Random(seed)

    def normal(self, shape: tuple[int, ...] | torch.Size, scale: float = 1.0) -> Tensor:
        drawn = torch.randn(shape, generator=self.torch)
        return drawn if scale == 1.0 else drawn * scale

    def integers(self, shape: tuple[int, ...] | torch.Size, top: int) -> Tensor:
        return torch.randint(0, max(top, 1), tuple(shape), generator=self.torch)

    def chance(self, shape: tuple[int, ...], share: float) -> Tensor:
        return torch.rand(shape, generator=self.torch) < share


def inputs(
    contract: Contract, sizes: Sizes, dice: Dice, mask: Mask = "random", scale: float = 1.0
) -> Inputs:
    """One value per input of the contract, in its order; None for a mask that is left out. Only
    data is drawn at `scale`: with weights as large, scores would pass any number that hides."""
    sizes = tied(contract, sizes)
    drawn = {i.name: _draw_input(i, sizes, dice, mask, scale) for i in contract.inputs}
    if contract.padding_idx is not None:
        _pad_one_in_front(contract, drawn, dice)
    place(contract, sizes, dice, drawn)
    if mask not in ("empty-rows", "left-padding"):
        keep_first(contract, drawn)
    return drawn


def keep_first(contract: Contract, drawn: Inputs) -> None:
    """Where each position sees none after it, masks leave the one key that every query may see."""
    for spec in contract.inputs if "causal" in contract.promises else ():
        mask = drawn[spec.name]
        if spec.role == "mask" and mask is not None:
            mask[..., 0] = not spec.forbids


def _pad_one_in_front(contract: Contract, drawn: Inputs, dice: Dice) -> None:
    """One sequence of several begins with padding, which chance alone may leave out."""
    for spec in contract.inputs:
        tokens = drawn[spec.name]
        if spec.dtype == "int" and spec.axes[:2] == ("B", "S") and min(tokens.shape) > 1:
            tokens[dice.plain.randrange(len(tokens)), 0] = contract.padding_idx


def place(contract: Contract, sizes: Sizes, dice: Dice, drawn: Inputs) -> None:
    """Positions begin anew in each segment; without segments each row has a start of its own, as
    far as M leaves room: a module that counts for itself gives another output."""
    segments = next((drawn[i.name] for i in contract.inputs if i.role == "segments"), None)
    for spec in (i for i in contract.inputs if i.role == "positions"):
        places = drawn[spec.name]
        if segments is not None and segments.shape == places.shape:
            begins = segments.diff(prepend=segments[..., :1]) != 0
            places -= (places * begins).cummax(-1).values
        elif segments is None:
            room = max(sizes["M"] - places.shape[-1], 0) if "M" in sizes else STARTS
            places += dice.integers((*places.shape[:-1], 1), room + 1)


def _draw_input(spec: Input, sizes: Sizes, dice: Dice, mask: Mask, scale: float) -> Tensor | None:
    shape = tuple(measure(axis, sizes) for axis in spec.axes)
    if spec.role == "mask":
        return _mask(spec, shape, dice, mask)
    if spec.role == "positions":
        return torch.arange(shape[-1]).expand(shape).clone()  # until it is known what is packed
    if spec.role in ("segments", "lengths"):
        return _segments(shape, dice) if spec.role == "segments" else _lengths(shape, sizes, dice)
    if spec.dtype == "int":
        return dice.integers(shape, sizes.get("V", 16))
    if spec.dtype == "bool":
        return dice.chance(shape, 0.5)
    if not CARRIES & set(spec.axes):
        scale = max(shape) ** -0.5 if len(shape) > 1 else 1.0
    return dice.normal(shape, scale)


def _segments(shape: tuple[int, ...], dice: Dice) -> Tensor:
    """0, 0, 1, 1, 1, 2: which of several sequences in a row each position belongs to."""
    begins = dice.chance(shape, BEGINS)
    begins[..., 0] = False
    return begins.long().cumsum(-1)


def _lengths(shape: tuple[int, ...], sizes: Sizes, dice: Dice) -> Tensor:
    """How many positions of each sequence are no padding: at least one, of the first all."""
    longest = next((sizes[axis] for axis in ("S", "T", "L") if axis in sizes), 1)
    lengths = dice.integers(shape, longest) + 1
    lengths[:1] = longest
    return lengths


def _mask(spec: Input, shape: tuple[int, ...], dice: Dice, kind: Mask) -> Tensor | None:
    """A boolean mask over (..., queries, keys), or (..., keys)."""
    if kind == "none" and spec.optional:
        return None
    forbidden = torch.zeros(shape, dtype=torch.bool)
    if kind == "causal" and len(shape) >= 2 and spec.axes[-2] not in ("B", "1"):
        forbidden = torch.ones(shape, dtype=torch.bool).triu(1)  # else it has keys and no queries
    if kind == "padding":
        forbidden = _padding(shape, dice)
    if kind == "left-padding":  # a sequence may be nothing else
        forbidden = ~_padding(shape, dice) | dice.chance(shape, FORBIDDEN)
    if kind == "one-key":
        forbidden = torch.ones(shape, dtype=torch.bool)
    if kind in ("random", "empty-rows"):
        forbidden = dice.chance(shape, FORBIDDEN)
    if kind in ("random", "empty-rows", "one-key"):
        keep = dice.integers(shape[:-1], shape[-1]).unsqueeze(-1)
        forbidden = forbidden.scatter(-1, keep, value=False)  # every query keeps a key
    if kind == "empty-rows":
        empty = dice.chance(shape[:-1], FORBIDDEN)
        empty.view(-1)[_two_rows(empty, dice)] = True
        forbidden = forbidden | empty.unsqueeze(-1)
    return forbidden if spec.forbids else ~forbidden


def _two_rows(rows: Tensor, dice: Dice) -> list[int]:
    """Two to be compared with each other, of different sequences: a mean of all values would be the
    same for two of one sequence."""
    order = dice.plain.sample(range(rows.numel()), rows.numel())
    each = rows.shape[1:].numel()
    return sorted(order, key=lambda row: row // each == order[0] // each and row != order[0])[:2]


def _padding(shape: tuple[int, ...], dice: Dice) -> Tensor:
    """Ragged sequences, filled up on the right: one length for all queries of a sequence, and
    another one for each sequence as far as there are others."""
    order = dice.plain.sample(range(1, shape[-1] + 1), shape[-1])
    lengths = torch.tensor([order[n % len(order)] for n in range(shape[0])])
    lengths = lengths.view(-1, *(1 for _ in shape[1:]))
    return (torch.arange(shape[-1]) >= lengths).expand(shape).clone()


def filled(contract: Contract, given: Inputs, fill: str) -> Inputs:
    """The inputs with values that can be followed by hand; masks and indices stay as drawn."""
    data = {i.name for i in contract.inputs if i.role == "data" and i.dtype == "float"}
    return {n: _pattern(t, fill) if t is not None and n in data else t for n, t in given.items()}


def _pattern(tensor: Tensor, fill: str) -> Tensor:
    if fill == "arange":
        return torch.arange(tensor.numel(), dtype=tensor.dtype).view(tensor.shape)
    if fill == "small":
        return tensor * SMALL
    if fill == "ones":
        return torch.ones_like(tensor)
    if fill == "eye":  # token i is the i-th unit vector
        rows, columns = (1, *tensor.shape)[-2:]
        unit = torch.eye(rows, columns, dtype=tensor.dtype)
        return unit.expand(*tensor.shape[:-2], rows, columns).reshape(tensor.shape).clone()
    return tensor


def weights(shapes: Mapping[str, torch.Size], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
    """Values that keep activations near unit variance and every parameter distinguishable; without
    `bias`, biases are zero."""
    counts = [shape.numel() for shape in shapes.values()]
    drawn = dice.normal((sum(counts),))  # at once: a draw takes longer than its values
    parts = torch.split(drawn, counts)
    return {
        name: _weight(name, part.view(shape), bias)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def _weight(name: str, normal: Tensor, bias: bool) -> Tensor:
    if not bias and name.endswith("bias") and normal.dim() == 1:
        return torch.zeros_like(normal)
    if normal.dim() >= 2:
        scale: float = normal.shape[-1] ** -0.5
        return normal * scale
    if set(name.replace(".", "_").split("_")) & GAINS:  # of a norm, some of them negative
        return (1 + normal * 0.3) * (normal < TURNED).to(normal.dtype).mul(2).sub(1)
    return normal * 0.3

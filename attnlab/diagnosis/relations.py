"""How a wrong value differs from the right one, in a word and in a sentence.

Both have one shape. The relations go from those that say most (the same mask, turned round; a
constant factor with a name) to those that say least (the same numbers at other places).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.diagnosis.pairing import equal

EXACT = 1e-6
SHIFTS = 3  # of a diagonal, or of rolled positions


class Relation(NamedTuple):
    """`kind` is one of a fixed list, as "scale" or "mask-inverted"; `says` follows "it is"."""

    kind: str
    says: str


def relate(mine: Tensor, theirs: Tensor, sizes: Mapping[str, int]) -> Relation | None:
    """The first relation that holds exactly; None where none does."""
    if mine.shape != theirs.shape or not mine.numel():
        return None
    a, b = mine.double(), theirs.double()
    if b.isinf().any() and equal(a, -b):  # before masks, which are infinities of one sign
        return Relation("sign", "the negative of the right one")
    if not b.isfinite().any():
        return None
    for look in LOOKS:
        found = look(a, b, sizes)
        if found:
            return found
    return None


def name_constant(factor: float, sizes: Mapping[str, int]) -> str:
    """`sqrt(hd)`, `1/D`, `2`: what a factor is in terms of the sizes."""
    for name, value in constants(sizes):
        if abs(factor - value) <= EXACT * abs(value):
            return name
    return f"{factor:.4g}"


def constants(sizes: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    """What factors are likely to be, with their names."""
    yield from (("-1", -1.0), ("2", 2.0), ("1/2", 0.5))
    order = sorted(sizes, key=lambda s: (s not in ("hd", "D", "H"), s))
    for name in (s for s in order if sizes[s] > 1):
        size = sizes[name]
        yield f"sqrt({name})", math.sqrt(size)
        yield f"1/sqrt({name})", 1 / math.sqrt(size)
        yield name, float(size)
        yield f"1/{name}", 1 / size
    for one, other in combinations([s for s in order if sizes[s] > 1], 2):
        for first, second in ((one, other), (other, one)):
            yield f"sqrt({first}/{second})", math.sqrt(sizes[first] / sizes[second])
            yield f"{first}/{second}", sizes[first] / sizes[second]
    for n in (2, 3):
        yield from ((f"sqrt({n})", math.sqrt(n)), (f"1/sqrt({n})", 1 / math.sqrt(n)))


# ---------------------------------------------------------------- masks


def _closed(value: Tensor) -> Tensor | None:
    """Where a mask, or scores that were masked, forbid; None where nothing says so."""
    if value.isneginf().any():
        return value.isneginf()
    low = value <= -1e4
    if low.any() and not low.all():
        return low
    if ((value == 0) | (value == 1)).all():
        return value == 1
    return None


def _mask(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    b = _closed(theirs)
    a = _closed(mine)
    if b is None or (a is None and not (theirs.isneginf().any() or (theirs <= -1e4).any())):
        return None
    a = torch.zeros_like(b) if a is None else a
    if equal(a.double(), b.double()):
        return None
    return _relate_masks(a, b)


def _relate_masks(a: Tensor, b: Tensor) -> Relation:
    found = _same_mask_elsewhere(a, b) if a.any() else None
    if found:
        return found
    if not a.any():
        share = f"{100 * b.double().mean().item():.0f} %"
        return Relation("mask-missing", f"not masked; the reference closes {share} of it")
    if not (a & ~b).any():
        return Relation("mask-too-weak", "masked at fewer places than the reference masks")
    if not (b & ~a).any():
        return Relation("mask-too-strong", "masked at more places than the reference masks")
    share = f"{100 * (a ^ b).double().mean().item():.0f} %"
    return Relation("mask-other", f"masked otherwise at {share} of its places")


def _same_mask_elsewhere(a: Tensor, b: Tensor) -> Relation | None:
    """The right mask turned round, transposed or moved; None where it is another one."""
    found: Relation | None = None
    if (a == ~b).all():
        found = Relation("mask-inverted", "the mask turned round: it closes what must be open")
    elif a.dim() >= 2 and a.shape[-1] == a.shape[-2]:
        eye = torch.eye(a.shape[-1], dtype=torch.bool)
        off = (a ^ b).reshape(-1, *a.shape[-2:]).any(0)
        if (a.transpose(-1, -2) == b).all():
            found = Relation("mask-transposed", "masked by the mask's transpose")
        elif shift := _diagonal_shift(a, b):
            found = Relation("mask-diagonal", f"masked up to a diagonal {shift} off the right one")
        elif len({int(j - i) for i, j in off.nonzero().tolist()}) == 1:
            found = Relation("mask-diagonal", "masked otherwise on one diagonal alone")
        elif (a | eye).equal(~b | eye):
            found = Relation("mask-inverted", "the mask turned round but for its diagonal")
    return found


def _diagonal_shift(a: Tensor, b: Tensor) -> int:
    size = a.shape[-1]
    for step in (s for n in range(1, min(SHIFTS, size - 1) + 1) for s in (n, -n)):
        mine = a[..., step:] if step > 0 else a[..., :step]
        right = b[..., :-step] if step > 0 else b[..., -step:]
        if mine.equal(right):
            return step
    return 0


# ---------------------------------------------------------------- numbers


def _ratio(mine: Tensor, theirs: Tensor, sizes: Mapping[str, int]) -> Relation | None:
    both = mine.isfinite() & theirs.isfinite()
    a, b = mine[both], theirs[both]
    told = b.abs() > 1e-12
    if not told.any() or (a[~told].abs() > 1e-9).any():
        return None
    ratio = a[told] / b[told]
    first = ratio[0].item()
    if first == 0 or not math.isfinite(first):
        return Relation("dropped", "zero everywhere") if not a.any() else None
    if ((ratio - first).abs() <= EXACT * abs(first)).all() and abs(first - 1) > EXACT:
        if abs(first + 1) <= EXACT:
            return Relation("sign", "the negative of the right one")
        size = "large" if abs(first) > 1 else "small"
        times = name_constant(max(abs(first), 1 / abs(first)), sizes)
        factor = f"{first if abs(first) > 1 else 1 / first:.4g}"
        said = f"{factor} times too {size}" + (f", which is {times}" if times != factor else "")
        return Relation("scale", said)
    if ((ratio.abs() - 1).abs() <= EXACT).all():
        share = f"{100 * (ratio < 0).double().mean().item():.0f} %"
        return Relation("sign", f"right but for the sign of {share} of its numbers")
    return None


def _offset(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    gap = mine - theirs
    if not gap.isfinite().all() or gap.numel() < 2:
        return None
    first = gap.flatten()[0].item()
    if abs(first) > 1e-9 and ((gap - first).abs() <= EXACT * max(1.0, abs(first))).all():
        return Relation("offset", f"off by {first:.4g} everywhere")
    return None


def _softmax_axis(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    ours, right = _axes_that_sum_to_one(mine), _axes_that_sum_to_one(theirs)
    if right and ours and ours != right:
        says = f"normalised along axis {ours[0]}, not along axis {right[0]}"
        return Relation("softmax-axis", says)
    return None


def _axes_that_sum_to_one(value: Tensor) -> list[int]:
    if not value.isfinite().all() or (value < 0).any():
        return []
    many = range(value.dim())
    sums = ((axis, value.sum(axis)) for axis in many if value.size(axis) > 1)
    return [axis - value.dim() for axis, s in sums if equal(s, torch.ones_like(s))]


def _geometric(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    """Frequencies of another base: the ratio grows by the same factor from step to step."""
    if not (mine.isfinite().all() and theirs.isfinite().all()) or (mine * theirs <= 0).any():
        return None
    logs = (mine / theirs).log()
    for axis in range(mine.dim()):
        if mine.size(axis) < 3:
            continue
        line = logs.movedim(axis, 0).reshape(mine.size(axis), -1)
        steps = line.diff(dim=0)
        step = steps.flatten()[0].item()
        same = (line - line[:, :1]).abs().max() <= EXACT
        if abs(step) > EXACT and same and (steps - step).abs().max() <= EXACT:
            says = f"a progression with another base: each step is {math.exp(step):.4g} times off"
            return Relation("base", says)
    return None


def _sine_for_cosine(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    if mine.abs().max() > 1 + EXACT or theirs.abs().max() > 1 + EXACT or mine.numel() < 4:
        return None
    circle = mine**2 + theirs**2
    if equal(circle, torch.ones_like(circle)):
        return Relation("sine-cosine", "a sine where a cosine belongs, or the other way round")
    return None


# ---------------------------------------------------------------- places


def _transposed(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    for a, b in combinations(range(mine.dim()), 2):
        if mine.size(a) == mine.size(b) > 1 and equal(mine.transpose(a, b), theirs):
            last = mine.dim()
            return Relation(
                "transposed", f"transposed: axes {a - last} and {b - last} change places"
            )
    return None


def _rolled(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    for axis in range(mine.dim()):
        size = mine.size(axis)
        if size < 2:
            continue
        if size > 2 and equal(mine.flip(axis), theirs):
            return Relation("flipped", f"reversed along axis {axis - mine.dim()}")
        for step in (s for n in range(1, min(SHIFTS, size - 1) + 1) for s in (n, -n)):
            if equal(mine.roll(-step, axis), theirs):
                return Relation("rolled", f"rolled by {step} along axis {axis - mine.dim()}")
            inner = size - abs(step)
            ours = mine.narrow(axis, max(step, 0), inner)
            right = theirs.narrow(axis, max(-step, 0), inner)
            if inner > 1 and equal(ours, right) and not _repeats(right, axis):
                says = f"shifted by {step} along axis {axis - mine.dim()}"
                return Relation("shifted", says)
    return None


def _repeats(value: Tensor, axis: int) -> bool:
    return equal(value.narrow(axis, 0, 1).expand_as(value), value)


def _permuted(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    """The same slices of an axis in another order, as when heads are grouped otherwise."""
    for axis in range(mine.dim()):
        size = mine.size(axis)
        if not 2 < size <= 256:
            continue
        ours = mine.movedim(axis, 0).reshape(size, -1)
        right = theirs.movedim(axis, 0).reshape(size, -1)
        gaps = torch.cdist(ours, right, p=float("inf"))
        order = gaps.argmin(dim=1)
        if len(set(order.tolist())) == size and gaps.min(dim=1).values.max() <= EXACT * 10:
            if order.equal(torch.arange(size)):
                continue
            return Relation("order", f"in another order along axis {axis - mine.dim()}")
    return None


def _scrambled(mine: Tensor, theirs: Tensor, _: Mapping[str, int]) -> Relation | None:
    if mine.numel() > 4 and equal(mine.flatten().sort().values, theirs.flatten().sort().values):
        return Relation("axes-mixed", "the right numbers at wrong places: axes are mixed")
    return None


LOOKS: tuple[Callable[[Tensor, Tensor, Mapping[str, int]], Relation | None], ...] = (
    _mask,
    _ratio,
    _offset,
    _softmax_axis,
    _sine_for_cosine,
    _geometric,
    _transposed,
    _rolled,
    _permuted,
    _scrambled,
)

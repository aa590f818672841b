"""A value of the reference as mine would hold it: in its shape, and as its kind of mask."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import torch
from torch import Tensor

from attnlab.diagnosis.pairing import LOW, TRIVIAL, Side, is_mask, layouts


def lent(theirs: Side, other: int, mine: Side, index: int) -> Tensor | None:
    """A value of theirs, or the piece of it, in the shape of one of mine; None where none fits."""
    like = mine.values[index].numbers
    value = theirs.values[other].numbers.double()
    found = next(laid_out(theirs, other, like), None)
    for pieces in mine.loops if found is None else ():
        if index not in pieces:
            continue
        full = [max(sizes) for sizes in zip(*(mine.values[i].numbers.shape for i in pieces))]  # noqa: B905
        whole = next(layouts(value, (len(pieces), *full)), None)
        if whole is not None and len(full) == like.dim():
            found = whole[pieces.index(index)][tuple(map(slice, like.shape))]
    return found


def laid_out(theirs: Side, other: int, like: Tensor) -> Iterator[Tensor]:
    """A value of theirs in the shape of one of mine."""
    value = theirs.values[other].numbers.double()
    if value.dim() == like.dim() and all(
        n in (1, m) for n, m in zip(like.shape, value.shape, strict=True)
    ):
        yield value  # or mine is broadcast where theirs is not
    elif value.numel() == like.numel():
        yield from layouts(value, tuple(like.shape))
    else:
        yield from spread(theirs.plain[other], like)


def written_mask(theirs: Side, other: int, like: Tensor, closes: bool) -> Tensor | None:
    """A mask of theirs as one of mine is written: in its shape, with its numbers."""
    mask = theirs.masks[other].double()
    laid = layouts(mask, tuple(like.shape))
    value = next(chain(laid, spread(mask, like)), None)
    if value is None:
        return None
    closed = value.bool() == closes
    low = like[like <= LOW].min() if (like <= LOW).any() else 1.0
    return torch.where(closed, low, 0.0).double()


def written_masks(theirs: Side, like: Tensor) -> Iterator[tuple[int, Tensor, bool]]:
    """What theirs closes, for a step of mine that says nothing else; each once."""
    if is_mask(like) and like.numel() > TRIVIAL:
        for other in theirs.masks:
            for closes in (True, False):
                value = written_mask(theirs, other, like, closes)
                if value is not None:
                    yield other, value, closes


def spread(small: Tensor, like: Tensor) -> Iterator[Tensor]:
    """A value that repeats along the axes of `like` that it does not have; `like` may repeat where
    it should not."""
    found = []
    for chosen in combinations(range(like.dim()), small.dim()):
        sizes = dict(zip(chosen, small.shape, strict=True))
        grown = sum(like.size(axis) != n for axis, n in sizes.items())
        if all(like.size(axis) in {n, 1} for axis, n in sizes.items()):
            found.append((grown, [sizes.get(axis, 1) for axis in range(like.dim())]))
    for _, shape in sorted(found, key=lambda each: each[0]):
        whole = [max(pair) for pair in zip(shape, like.shape, strict=True)]
        yield small.reshape(shape).expand(whole)

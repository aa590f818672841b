"""Masks that look like one of a usual kind, to code that looks at a part of them. Not a check.

Code that recognises a causal mask, or one of padding alone, takes a faster way; a corner, a row, a
count or a sum is not enough to know it by.
"""

from __future__ import annotations

from collections.abc import Callable

from attnlab.checks.base import Tensor


def shaped(hidden: Tensor, name: str) -> Tensor | None:
    """Such a mask, True where a key is hidden, made of a random one whose last axes are queries and
    keys; None where it has not as many of them as keys. Every query keeps a key."""
    if hidden.shape[-1] != hidden.shape[-2] or hidden.shape[-1] < 3:
        return None
    made = SHAPES[name](hidden.clone())
    nothing = made.all(-1, keepdim=True)
    return made & ~(nothing & _own(hidden))


def _own(like: Tensor) -> Tensor:
    """Each query's own key."""
    return like.new_ones(like.shape).tril().triu()


def _causal(like: Tensor) -> Tensor:
    return like.new_ones(like.shape).triu(1)


def _band(like: Tensor) -> Tensor:
    """Keys two away and farther."""
    return ~like.new_ones(like.shape).tril(1).triu(-1)


def _blocks(like: Tensor) -> Tensor:
    """Two sequences in a row: what is of the other."""
    half = like.shape[-1] // 2
    found = like.new_zeros(like.shape)
    found[..., :half, half:] = True
    found[..., half:, :half] = True
    return found


def _left(like: Tensor) -> Tensor:
    """Causal, and the first keys are padding."""
    found = _causal(like)
    found[..., : like.shape[-1] // 2] = True
    return found


def _alike(found: Tensor) -> Tensor:
    """The first two rows, and the last."""
    for row in (1, -1):
        found[..., row, :] = found[..., 0, :].clone()
    return found


def _open(found: Tensor) -> Tensor:
    found[..., 0, :] = False
    return found


def _corner(found: Tensor) -> Tensor:
    found[..., 0, :] = True
    found[..., 0, 0] = False
    return found


# Of the second of two that follow each other sums are the same.
SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "that hides the future and more": lambda hidden: hidden | _causal(hidden),
    "that hides the future, and keys at the left": _left,
    "that hides the past": lambda hidden: _causal(hidden).mT,
    "that hides the future": _causal,
    "that is a band": _band,
    "of two blocks": _blocks,
    "whose first query sees all": _open,
    "whose first query sees one key": _corner,
    "whose first and last rows are alike": _alike,
    "with keys in another order": lambda hidden: _alike(hidden).roll(1, -1),
}

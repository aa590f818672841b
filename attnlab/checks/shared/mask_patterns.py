"""Masks that look like one of a usual kind, to code that looks at a part of them. Not a check.

Code that recognises a causal mask, or one of padding alone, takes a faster way; a corner, a row, a
count or a sum is not enough to know it by.
"""

from collections.abc import Callable

from attnlab.catalogue.contract_facts import mask_input
from attnlab.probe.answers import Tensor
from attnlab.records import Contract

FEWEST = 3  # samples of a batch that has a middle


def unusual_masks(contract: Contract, hidden: Tensor) -> dict[str, Tensor]:
    """Masks that are nearly of a usual kind, by what a message calls them; True where a key is
    hidden. They are made from a random one, whose last axes are queries and keys."""
    return {**_patterns(hidden), **_along_the_batch(contract, hidden)}


def _patterns(hidden: Tensor) -> dict[str, Tensor]:
    """Of as many queries as keys; every query keeps a key."""
    if hidden.shape[-1] != hidden.shape[-2] or hidden.shape[-1] < 3:
        return {}
    masks = {name: pattern(hidden.clone()) for name, pattern in PATTERNS.items()}
    own = _near(hidden, 0)
    return {name: mask & ~(mask.all(-1, keepdim=True) & own) for name, mask in masks.items()}


def _along_the_batch(contract: Contract, hidden: Tensor) -> dict[str, Tensor]:
    """For code that takes the mask of one sample for that of all."""
    empty_rows = "empty-rows" in contract.promises
    masks = {"that hides all keys": hidden | ~hidden} if empty_rows else {}
    if mask_input(contract).axes[0] != "B" or len(hidden) < FEWEST:
        return masks
    last, ends = hidden.clone(), hidden.clone()
    last[-1], ends[-1] = False, ends[0]
    masks |= {"of which the last sample's hides nothing": last, "alike at both ends": ends}
    if empty_rows:
        masks["with an empty row in the second sample alone"] = one = hidden.clone()
        one[1, ..., -1, :] = True
    return masks


def _near(like: Tensor, steps: int) -> Tensor:
    """The keys at most so many positions away from a query."""
    return like.new_ones(like.shape).tril(steps).triu(-steps)


def _causal(like: Tensor) -> Tensor:
    return like.new_ones(like.shape).triu(1)


def _blocks(like: Tensor) -> Tensor:
    """Two sequences in a row: what is of the other."""
    half = like.shape[-1] // 2
    found = like.new_zeros(like.shape)
    found[..., :half, half:] = True
    found[..., half:, :half] = True
    return found


def _lower_triangle(like: Tensor) -> Tensor:
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
PATTERNS: dict[str, Callable[[Tensor], Tensor]] = {
    "that hides the future and more": lambda hidden: hidden | _causal(hidden),
    "that hides the future, and keys at the left": _lower_triangle,
    "that hides the past": lambda hidden: _causal(hidden).mT,
    "that hides the future": _causal,
    "that is a band": lambda hidden: ~_near(hidden, 1),
    "of two blocks": _blocks,
    "whose first query sees all": _open,
    "whose first query sees one key": _corner,
    "whose first and last rows are alike": _alike,
    "with keys in another order": lambda hidden: _alike(hidden).roll(1, -1),
}

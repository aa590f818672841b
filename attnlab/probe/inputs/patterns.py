"""Rare input patterns for confirming rounds.

A random mask hides a third of the keys of every query, random inputs are all of one size, and
weights have biases. Drawing the inputs of each confirming round in a pattern of its own
shows what goes wrong elsewhere without more calls.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.probe.answers import Inputs, Mask
from attnlab.probe.inputs.draw import Dice, keep_first
from attnlab.records import Contract, Input

RANDOM, EMPTY = "random", "empty-rows"  # kinds of masks
DENSE = 0.85  # share of keys that a dense mask forbids
SOME = 0.35  # and another one
MANY = 16  # queries, of which the later half sees other keys
NOTHING = 0.15  # share of positions that are all zero
ROWS = (0.001, 0.01, 0.1, 1.0, 4.0)  # sizes of positions
SAMPLES = (1.0, 0.003, 0.03)  # sizes of whole sequences


class InputPattern(NamedTuple):
    """How inputs and weights of a round are drawn."""

    dense: bool = False  # masks hide most keys, and from every query its own position
    alike: bool = False  # all queries but one see the same keys, and one is hidden from all
    open: bool = False  # in place of no mask: one that hides nothing
    uneven: bool = False  # positions of very different size
    small: bool = False  # sequences of very different size
    empty: bool = False  # positions that are all zero; ties in rows that are no sequences
    bias: bool = True
    first: str = ""  # the first sequence's mask: "open" or "causal", while the others' are random

    def description(self, masked: bool = True, weighted: bool = True, ordered: bool = True) -> str:
        """For a message: what is unusual, of what there is."""
        masks = "most keys hidden" if self.dense else "a key hidden from all" if self.alike else ""
        masks = f"only the first mask is {self.first}" if self.first else masks
        empty = "some positions of x all zero" if ordered else "values with ties"
        data = empty if self.empty else ""
        scales = "positions of x" if ordered else "rows"
        data = f"{scales} on very different scales" if self.uneven else data
        weights = "" if self.bias or not weighted else "biases of zero"
        return ", ".join(filter(None, (masks if masked else "", data, weights)))


USUAL = InputPattern()
# Of the rounds after the telling one, by how far after: for code that takes what holds of the first
# mask for true of all.
FIRSTS = {1: InputPattern(first="causal"), 2: InputPattern(first="open")}
PATTERNS = (
    InputPattern(dense=True, uneven=True),
    InputPattern(alike=True, open=True, small=True, empty=True, bias=False),
)


def pattern_of(number: int) -> InputPattern:
    """The pattern of a confirming round, in turn."""
    return PATTERNS[number % len(PATTERNS)]


def apply_pattern(
    pattern: InputPattern, contract: Contract, given: Inputs, dice: Dice, mask: Mask
) -> Inputs:
    """Inputs that were drawn as usual with this kind of mask, changed to this pattern."""
    found = dict(given)
    for spec in contract.inputs:
        value = given[spec.name]
        if spec.role == "mask":
            found[spec.name] = _mask(pattern, spec, value, dice, mask)
        elif spec.role == "data" and value is not None and value.is_floating_point():
            found[spec.name] = _data(pattern, spec, value, dice)
    keep_first(contract, found)
    return found


def _mask(
    pattern: InputPattern, spec: Input, value: Tensor | None, dice: Dice, mask: Mask
) -> Tensor | None:
    if value is None or mask not in (RANDOM, EMPTY):
        return value
    forbidden = value if spec.forbids else ~value
    if pattern.first:
        forbidden = _first(pattern.first, forbidden, spec, mask)
    elif mask == EMPTY:
        return value
    elif pattern.dense:
        forbidden = _dense(forbidden, spec, dice)
    elif pattern.alike and has_query_axis(spec):
        forbidden = _same_keys(forbidden, dice)
    return forbidden if spec.forbids else ~forbidden


def _first(kind: str, forbidden: Tensor, spec: Input, mask: Mask) -> Tensor:
    """The first sample is of this kind. Where rows may be empty, its rows are, or all but one."""
    if spec.axes[0] != "B" or len(forbidden) < 2:
        return forbidden
    found = forbidden.clone()
    if mask == EMPTY:
        found[0] = True
        first = found[0, ..., :1, 0] if found.dim() > 2 else found[0, :1]
        first.fill_(kind != "causal" or not has_query_axis(spec))
    elif kind == "causal" and has_query_axis(spec):
        found[0] = torch.ones_like(found[0]).triu(1)
    else:
        found[0] = False
    return found


def _dense(forbidden: Tensor, spec: Input, dice: Dice) -> Tensor:
    """Every query keeps a key: the one after its own position, where it has one."""
    keys = forbidden.shape[-1]
    forbidden = forbidden | dice.chance(tuple(forbidden.shape), DENSE)
    keep = dice.integers(forbidden.shape[:-1], keys)
    if has_query_axis(spec) and forbidden.shape[-2] == keys and keys > 1:
        forbidden.diagonal(dim1=-2, dim2=-1).fill_(True)
        keep = ((torch.arange(keys) + 1) % keys).expand(keep.shape)
    return forbidden.scatter(-1, keep.unsqueeze(-1), value=False)


def _same_keys(forbidden: Tensor, dice: Dice) -> Tensor:
    """Rows of keys that are the same for every query but one, and in the first sample a key that
    nobody sees."""
    *samples, queries, keys = forbidden.shape
    if keys == 1:
        return torch.zeros_like(forbidden)
    hidden = dice.plain.randrange(keys)
    kept = (hidden + 1 + dice.integers((*samples, 1, 1), keys - 1)) % keys
    same = dice.chance((*samples, 1, keys), SOME).scatter(-1, kept, value=False)
    found = same.expand(forbidden.shape).clone()
    if queries > MANY:  # a chunk of queries must not do with the rows of another
        other = dice.chance((*samples, 1, keys), SOME).scatter(-1, kept, value=False)
        found[..., queries // 2 :, :] = other
    found[..., dice.plain.randrange(queries), :] = False
    first = found[0] if samples else found
    first[..., hidden] = True
    return found


def _data(pattern: InputPattern, spec: Input, value: Tensor, dice: Dice) -> Tensor:
    positions = (*value.shape[:-1], 1)
    if pattern.uneven:
        sizes = torch.tensor(ROWS)
        value = value * sizes[dice.integers(positions, len(sizes))]
    if pattern.small:
        value = value * _samples(value, dice)
    if pattern.empty and is_row(spec):
        value = value.round()  # nine normal numbers then hold several pairs
    elif pattern.empty:
        value = value.masked_fill(_empty(spec, positions, dice), 0.0)
    return value


def is_row(spec: Input) -> bool:
    """Whether an input holds some numbers for each sample, and no sequence."""
    return (
        spec.role == "data"
        and len(spec.axes) == 2
        and spec.axes[0] == "B"
        and not {"S", "Sq", "Sk"} & {*spec.axes}
    )


def _empty(spec: Input, positions: tuple[int, ...], dice: Dice) -> Tensor:
    """Some positions, one at least in every sample: chance alone may leave out a small batch."""
    empty = dice.chance(positions, NOTHING)
    samples = empty.view(positions[0] if spec.axes[0] == "B" else 1, -1)
    if samples.shape[1] > 1:
        samples.scatter_(1, dice.integers((len(samples), 1), samples.shape[1]), value=True)
    return empty


def _samples(value: Tensor, dice: Dice) -> Tensor:
    """A size for each sequence, of which one is usual: small differences are seen in no other."""
    sizes = torch.tensor(SAMPLES).repeat(value.shape[0])[: value.shape[0]]
    sizes = sizes.roll(dice.plain.randrange(len(sizes)))
    return sizes.view(-1, *(1 for _ in value.shape[1:]))

"""Unusual masks, inputs and weights of the rounds that confirm: what they have, and what stays."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.patterns import (
    FIRSTS,
    PATTERNS,
    ROWS,
    SAMPLES,
    USUAL,
    InputPattern,
    apply_pattern,
    pattern_of,
)
from attnlab.records import Contract, Input

SIZES = {"B": 3, "S": 8, "Sk": 6, "D": 64}
X = Input(name="x", axes=("B", "S", "D"))
AXES = [("B", "S", "S"), ("S", "S"), ("B", "1", "S", "S"), ("B", "S"), ("B", "S", "Sk")]


def drawn(pattern, axes=("B", "S", "S"), kind="random", forbids=True, promises=(), seed=0, **more):
    """Inputs of a draw in this pattern; the mask as where it forbids."""
    mask = Input(name="mask", axes=axes, dtype="bool", role="mask", forbids=forbids, optional=True)
    contract = Contract(inputs=(X, mask), promises=promises)
    dice = Dice(seed)
    usual = draw.inputs(contract, SIZES | more, dice, kind)
    found = apply_pattern(pattern, contract, usual, dice, kind)
    got = found["mask"]
    return found["x"], got if got is None or forbids else ~got


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([*PATTERNS, *FIRSTS.values()]),
    st.sampled_from(AXES),
    st.booleans(),
    st.integers(1, 5),
    st.integers(0, 50),
)
def test_every_query_keeps_a_key(pattern, axes, forbids, length, seed):
    """A row without keys would ask of a module what its task may not promise."""
    _, mask = drawn(pattern, axes, forbids=forbids, seed=seed, S=length, Sk=length + 1)
    assert not mask.all(-1).any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_where_none_sees_a_later_one_the_first_key_stays(pattern):
    """Position 0 has no other."""
    assert not drawn(pattern, promises=("causal",))[1][..., 0].any()


def test_dense_masks_hide_most_and_the_own_position():
    """Code that guesses what True means by the share of True, or by the diagonal, guesses wrong."""
    _, mask = drawn(InputPattern(dense=True))
    assert mask.float().mean() > 0.7
    assert mask.diagonal(dim1=1, dim2=2).all()


def test_alike_masks_hide_a_key_from_all():
    """One row apart all queries of a sequence see the same; in one sequence a key is hidden."""
    _, mask = drawn(InputPattern(alike=True), seed=3)
    assert mask.all(1).any(-1).tolist() == [True, False, False]
    for rows in mask.int():
        assert sum(not torch.equal(row, rows.mode(0).values) for row in rows) <= 1


@pytest.mark.parametrize("kind", ["none", "causal", "empty-rows"])
def test_other_kinds_of_mask_stay(kind):
    """What was asked for by name is not another thing."""
    for pattern in PATTERNS:
        usual, odd = (drawn(m, kind=kind)[1] for m in (USUAL, pattern))
        assert (usual is None) == (odd is None)
        assert usual is None or torch.equal(usual, odd)


def test_positions_differ_in_size():
    """By all that is between the smallest and the largest."""
    x, _ = drawn(InputPattern(uneven=True))
    sizes = x.norm(dim=-1) / 8
    assert sizes.min() < 2 * ROWS[0]
    assert sizes.max() > ROWS[-1] / 2


def test_whole_sequences_are_small_and_positions_zero():
    """A norm's eps is seen where all that it is given is small."""
    x, _ = drawn(InputPattern(small=True, empty=True), seed=1)
    zero = ~x.any(-1)
    assert 0 < zero.sum() < zero.numel() / 2
    largest = x.abs().amax((1, 2))
    assert sorted(size > 1 for size in largest.tolist()) == [False, False, True]
    assert largest.min() < 6 * min(SAMPLES)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 1000))
def test_some_position_of_each_sample_is_zero(length, samples, seed):
    """A batch is small: left to chance, one seed in twenty would see none."""
    x, _ = drawn(InputPattern(empty=True), seed=seed, S=length, B=samples)
    assert (~x.any(-1)).any(-1).all()


def test_without_a_batch_some_positions_are_zero_and_others_are_not():
    """The first axis is then the positions'."""
    contract = Contract(inputs=(Input(name="x", axes=("S", "D")),))
    for seed in range(20):
        usual = draw.inputs(contract, SIZES, Dice(seed))
        x = apply_pattern(InputPattern(empty=True), contract, usual, Dice(seed), "none")["x"]
        assert 0 < (~x.any(-1)).sum() < SIZES["S"]


@pytest.mark.parametrize("kind", ["open", "causal"])
def test_the_first_mask_may_be_another_than_the_others(kind):
    """What holds of it is not true of all; of a batch of one nothing is taken."""
    for seed in range(10):
        _, found = drawn(InputPattern(first=kind), seed=seed)
        right = torch.zeros_like(found[0]) if kind == "open" else torch.ones_like(found[0]).triu(1)
        assert torch.equal(found[0], right)
        assert not any(torch.equal(other, right) for other in found[1:])
        assert not found.all(-1).any()


def test_the_first_sequence_may_have_empty_rows_alone():
    """All but the first, or all of them."""
    for kind, full in (("causal", 1), ("open", 0)):
        _, found = drawn(InputPattern(first=kind), kind="empty-rows", promises=("empty-rows",))
        assert (~found[0].all(-1)).sum() == full
        assert not found[1:].all()


def test_weights_without_biases():
    """Fresh modules have none to speak of, and then a score may be exactly zero."""
    shapes = {"norm.weight": torch.Size([4]), "proj.bias": torch.Size([4])}
    found = draw.weights(shapes, Dice(0), bias=False)
    assert found["norm.weight"].all()
    assert not found["proj.bias"].any()


def test_each_round_has_its_own_and_says_so():
    """One after the other; a message names what is unusual, and nothing of the usual."""
    assert [pattern_of(n) for n in range(3)] == [*PATTERNS, PATTERNS[0]]
    assert USUAL.description() == ""
    assert InputPattern(first="open").description() == "only the first mask is open"
    assert PATTERNS[1].description(masked=False, weighted=False) == "some positions of x all zero"
    assert PATTERNS[0].description() == "most keys hidden, positions of x on very different scales"
    assert PATTERNS[1].description() == (
        "a key hidden from all, some positions of x all zero, biases of zero"
    )

"""Inputs and weights of a round: right in shape and kind, the same for the same seed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice, weights
from attnlab.records import Contract, Input

SIZES = {"B": 3, "S": 5, "Sk": 6, "H": 2, "D": 4}
KINDS = ("none", "random", "causal", "empty-rows")
AXES = [("B", "S", "S"), ("S", "S"), ("B", "1", "S", "S"), ("B", "H", "S", "S"), ("B", "S"), ("S",)]
AXES += [("B", "S", "Sk"), ("B", "1", "1", "S")]


def mask(kind, axes=("B", "S", "S"), forbids=True, optional=True, seed=0):
    """Where a drawn mask forbids."""
    spec = Input(name="m", axes=axes, dtype="bool", role="mask", forbids=forbids, optional=optional)
    got = draw.inputs(Contract(inputs=(spec,)), SIZES, Dice(seed), kind)["m"]
    return got if got is None or forbids else ~got


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(AXES), st.sampled_from(KINDS), st.booleans(), st.integers(0, 50))
def test_every_query_keeps_a_key_but_for_empty_rows(axes, kind, forbids, seed):
    """No mask makes a row without keys, unless that is what was asked for, and then one does."""
    got = mask(kind, axes, forbids, optional=False, seed=seed)
    assert (got.shape, got.dtype) == (tuple(SIZES.get(a, 1) for a in axes), torch.bool)
    assert bool(got.all(-1).any()) is (kind == "empty-rows")


@pytest.mark.parametrize("axes", [a for a in AXES if a[0] == "B"])
def test_empty_rows_stand_in_two_sequences(axes):
    """A mean over all keys, which every empty row of one sequence shares, differs between two."""
    for seed in range(30):
        empty = mask("empty-rows", axes, seed=seed).all(-1)
        assert int(empty.view(SIZES["B"], -1).any(1).sum()) >= 2


def test_one_sequence_of_tokens_begins_with_padding():
    """What a file does with padding in front is seen in every draw, not in most."""
    contract = Contract(
        inputs=(Input(name="ids", axes=("B", "S"), dtype="int"),), sizes={"V": 500}, padding_idx=7
    )
    for seed in range(9):
        ids = draw.inputs(contract, {**SIZES, "V": 500}, Dice(seed))["ids"]
        assert (ids[:, 0] == 7).any()
        assert not (ids[:, 0] == 7).all()


@pytest.mark.parametrize("axes", AXES)
def test_padding_in_front_closes_as_many_keys_as_it_likes(axes):
    """From the first key alone to whole sequences: blocks of keys are closed before open ones."""
    found = [mask("left-padding", axes, seed=seed).long().cumprod(-1).sum(-1) for seed in range(30)]
    lengths = torch.stack(found)
    assert set(lengths.flatten().tolist()) == set(range(1, SIZES[axes[-1]] + 1))


@given(st.integers(0, 50))
def test_polarity_turns_a_mask_round(seed):
    """`allows` is the same mask with the opposite meaning of True."""
    forbids, allows = (mask("random", forbids=f, seed=seed) for f in (True, False))
    assert torch.equal(forbids, allows)


def test_causal_forbids_the_future_and_nothing_else():
    """Above the diagonal, for every sequence and head; also where keys are more than queries."""
    for axes in (("S", "S"), ("B", "S", "S"), ("B", "H", "S", "S"), ("B", "S", "Sk")):
        got = mask("causal", axes)
        assert torch.equal(got, torch.ones(got.shape, dtype=torch.bool).triu(1))


@pytest.mark.parametrize("axes", [("B", "S"), ("S",), ("B", "1", "1", "S"), ("1", "S")])
def test_a_mask_over_keys_alone_cannot_be_causal(axes):
    """A padding mask has no queries: its rows are sequences, and nothing is forbidden."""
    assert not mask("causal", axes).any()


@given(st.integers(0, 50))
def test_sequences_are_padded_each_to_a_length_of_its_own(seed):
    """As far as there are lengths, and none is empty."""
    got = mask("padding", seed=seed)
    lengths = (~got[:, 0]).sum(-1).tolist()
    assert len(set(lengths)) == len(lengths)
    assert min(lengths) > 0
    assert torch.equal(got, got[:, :1].expand(got.shape))


def test_none_leaves_an_optional_mask_out():
    """None where that is allowed, else a mask that forbids nothing."""
    assert mask("none") is None
    assert not mask("none", optional=False).any()


def test_random_masks_forbid_some():
    """A good share, so that a mask that is ignored is noticed."""
    share = mask("random", ("B", "S", "S"), seed=1).double().mean().item()
    assert 0.1 < share < 0.6


def test_inputs_come_in_order_with_their_kinds():
    """Floats, indices below V, booleans; every axis measured."""
    contract = Contract(
        inputs=(
            Input(name="x", axes=("B", "2*D")),
            Input(name="ids", axes=("B", "S"), dtype="int"),
            Input(name="flag", axes=("S",), dtype="bool"),
        )
    )
    got = draw.inputs(contract, {**SIZES, "V": 3}, Dice(0))
    assert list(got) == ["x", "ids", "flag"]
    assert [tuple(t.shape) for t in got.values()] == [(3, 8), (3, 5), (5,)]
    assert [t.dtype for t in got.values()] == [torch.float32, torch.int64, torch.bool]
    assert set(got["ids"].unique().tolist()) <= {0, 1, 2}


def test_scale_is_the_standard_deviation():
    """`finite` looks at thirty times the usual size."""
    contract = Contract(inputs=(Input(name="x", axes=("B", "S", "D")),))
    small = draw.inputs(contract, {"B": 9, "S": 99, "D": 9}, Dice(0), scale=1.0)["x"]
    large = draw.inputs(contract, {"B": 9, "S": 99, "D": 9}, Dice(0), scale=30.0)["x"]
    torch.testing.assert_close(large, small * 30)
    assert small.std().item() == pytest.approx(1.0, abs=0.05)


def test_the_same_seed_draws_the_same():
    """A grade can be had again, and another seed gives another one."""
    contract = Contract(inputs=(Input(name="x", axes=("B", "S", "D")),))
    first, again, other = (draw.inputs(contract, SIZES, Dice(s))["x"] for s in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(mask("empty-rows", seed=4), mask("empty-rows", seed=4))


def test_drawing_leaves_the_global_generator_alone():
    """A candidate that draws numbers itself is not disturbed, and cannot foresee ours."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    Dice(0).normal((3,))
    mask("empty-rows")
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_can_be_told_apart():
    """No two parameters are equal, gains are near 1, biases are not 0, and fans keep the scale."""
    shapes = {
        "proj.weight": torch.Size((64, 256)),
        "norm.weight": torch.Size((64,)),
        "proj.bias": torch.Size((64,)),
        "norm.bias": torch.Size((64,)),
        "temperature": torch.Size(()),
    }
    got = weights(shapes, Dice(0))
    assert {n: t.shape for n, t in got.items()} == shapes
    assert got["proj.weight"].std().item() == pytest.approx(1 / 16, rel=0.05)
    gains = got["norm.weight"]
    assert gains.abs().mean().item() == pytest.approx(1, abs=0.2)
    assert 0 < (gains < 0).sum() < len(gains) / 4
    named = weights({n: torch.Size((9,)) for n in ("gain", "norm.gamma", "q_scale")}, Dice(0))
    assert all(t.abs().min() > 0.2 for t in named.values())
    assert got["proj.bias"].abs().min() > 0
    assert not torch.equal(got["proj.bias"], got["norm.bias"])


PLACES = Input(name="places", axes=("B", "S"), dtype="int", role="positions")
PACKED = Input(name="segments", axes=("B", "S"), dtype="int", role="segments")


@given(st.integers(0, 99))
def test_positions_begin_where_the_contract_lets_them(seed):
    """They go up by one: from a start of each row's own, within M, or anew in each segment."""
    sizes = {"B": 4, "S": 9, "M": 12}
    alone = draw.inputs(Contract(sizes=sizes, inputs=(PLACES,)), sizes, Dice(seed))["places"]
    assert (alone.diff() == 1).all()
    assert alone.min() >= 0
    assert alone.max() < 12
    packed = draw.inputs(Contract(sizes=sizes, inputs=(PACKED, PLACES)), sizes, Dice(seed))
    for row, places in zip(packed["segments"].tolist(), packed["places"].tolist(), strict=True):
        assert places == [i - row.index(segment) for i, segment in enumerate(row)]


def test_rows_do_not_all_begin_alike():
    """Or a module that counts for itself would do the same."""
    sizes = {"B": 40, "S": 3}
    places = draw.inputs(Contract(sizes=sizes, inputs=(PLACES,)), sizes, Dice(1))["places"]
    assert set(places[:, 0].tolist()) == set(range(draw.STARTS + 1))


def test_weights_given_as_arguments_are_not_drawn_at_the_scale_of_data():
    """Loud data with loud weights would make scores that no usual fill of a mask is below."""
    specs = (Input(name="x", axes=("B", "S", "D")), Input(name="w.query", axes=("D", "H", "D")))
    sizes = {"B": 2, "S": 50, "D": 30, "H": 2}
    loud = draw.inputs(Contract(inputs=specs), sizes, Dice(0), scale=90.0)
    assert 85 < loud["x"].std() < 95
    assert loud["w.query"].std() < 0.3

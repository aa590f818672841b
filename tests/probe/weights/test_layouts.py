"""Expressions of weight maps: what they move, that nothing is lost, what bad ones are told."""

import pytest
import torch

from attnlab.catalogue.weight_expressions import Misfit, parse
from attnlab.probe.weights.layouts import (
    element_indices,
    evaluate,
    map_gradients,
    map_weights,
    weight_indices,
)

SIZES = {"H": 2, "hd": 3, "D": 6}
SHAPES = {"q.weight": (6, 4), "k.weight": (6, 4), "bias": (6,)}


def values(text):
    """What an expression makes of the numbered elements of SHAPES."""
    return evaluate(parse(text), {**SIZES, **element_indices(SHAPES)})


Q, K = (element_indices(SHAPES)[n] for n in ("q.weight", "k.weight"))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("q.weight", Q),
        ("t(q.weight)", Q.T),
        ("cat(q.weight, k.weight)", torch.cat([Q, K])),
        ("stack(q.weight,k.weight)", torch.stack([Q, K])),
        ("part(q.weight, 1, H)", Q[3:]),
        ("rows(q.weight, 1, 3)", Q[1:3]),
        ("rows(q.weight, 1, 3, H)", torch.cat([Q[1:3], Q[4:6]])),
        ("flip(q.weight, 1)", Q.flip(1)),
        ("split(q.weight, 0, H)", Q.view(2, 3, 4)),
        ("permute(split(q.weight, 0, 2), 0, 2, 1)", Q.view(2, 3, 4).mT),
        ("unsqueeze(bias, 0)", torch.arange(48, 54)[None]),
        ("interleave(H, q.weight, k.weight)", torch.cat([Q[:3], K[:3], Q[3:], K[3:]])),
    ],
)
def test_an_expression_moves_elements(text, made):
    """Each function does what its name says, nested or alone."""
    assert torch.equal(values(text), made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks a name"),
        ("cat(q.weight", "lacks a closing bracket"),
        ("cat(q.weight,", "lacks a name"),
        ("cat()", "lacks a name"),
        ("q.weight k.weight", "goes on after its end: k.weight"),
        ("q.weight + 1", 'cannot be read from "+ 1" on'),
        ("reverse(q.weight)", "reverse is none of cat, stack, part"),
        ("t(v.weight)", "the reference has no parameter v.weight"),
        ("part(q.weight, 2, 2)", "has no part 2 of 2"),
        ("part(q.weight, 0, 4)", "has no part 0 of 4"),
        ("rows(q.weight, 4, 7)", "a tensor (6, 4) has no rows 4 to 7"),
        ("cat(q.weight, bias)", "cat does not take (6, 4), (6,)"),
        ("split(q.weight, 0, 5)", "split does not take (6, 4), 0, 5"),
        ("t(3)", "t does not take 3"),
    ],
)
def test_a_bad_expression_is_said_to_be_one(text, said):
    """The sentence names what is wrong in it."""
    with pytest.raises(Misfit) as caught:
        values(text)
    assert said in str(caught.value)


def test_a_key_with_a_number_sign_stands_for_a_family():
    """One entry for all heads; the number goes into the expression."""
    mine = {"heads.0.w": (3, 4), "heads.1.w": (3, 4)}
    at = weight_indices({"heads.#.w": "part(q.weight, #, H)"}, mine, {"q.weight": (6, 4)}, SIZES)
    assert torch.equal(at["heads.1.w"], Q[3:])


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"a": "q.weight"}, "the map says nothing of the parameter b"),
        ({"a": "q.weight", "b": "t(k.weight)"}, "parameter b has shape (6, 4), t(k.weight) gives"),
        ({"a": "q.weight", "b": "3"}, "parameter b has shape (6, 4), 3 gives 3"),
        ({"a": "q.weight", "b": "q.weight"}, "the reference's q.weight is used more than once"),
        (
            {"a": "cat(part(q.weight, 0, 2), part(k.weight, 1, 2))", "b": "k.weight"},
            "the module has no place for all of the reference's q.weight",
        ),
    ],
)
def test_every_weight_has_one_place(entries, said):
    """What is lost would not be tested, what is doubled would be tied by nobody."""
    theirs = {"q.weight": (6, 4), "k.weight": (6, 4)}
    with pytest.raises(Misfit) as caught:
        weight_indices(entries, {"a": (6, 4), "b": (6, 4)}, theirs, SIZES)
    assert said in str(caught.value)


def test_weights_and_gradients_go_the_same_way():
    """What has no gradient in the reference has none in the module either."""
    entries = {"wq": "t(q.weight)", "kb": "k.weight", "b": "bias"}
    mine = {"wq": (4, 6), "kb": (6, 4), "b": (6,)}
    at = weight_indices(entries, mine, SHAPES, SIZES)
    given = {n: torch.randn(s, dtype=torch.float64) for n, s in SHAPES.items()}
    assert torch.equal(map_weights(given, at)["wq"], given["q.weight"].T)
    del given["k.weight"]
    moved = map_gradients(given, at, SHAPES)
    assert set(moved) == {"wq", "b"}
    assert torch.equal(moved["wq"], given["q.weight"].T)

"""Inputs that can be followed by hand."""

import pytest
import torch

from attnlab.probe.inputs.draw import Dice, filled, inputs
from attnlab.records import Contract, Input

CONTRACT = Contract(
    sizes={"B": 2, "S": 3, "D": 4},
    inputs=(
        Input(name="x", axes=("B", "S", "D")),
        Input(name="ids", axes=("B", "S"), dtype="int"),
        Input(name="mask", axes=("B", "S"), dtype="bool", role="mask", optional=True),
        Input(name="row", axes=("D",)),
    ),
)


def test_small_noise_is_noise_made_small():
    """The values of an embedding at its beginning: what is added to them shows."""
    before, after = drawn("small")
    assert torch.equal(after["x"], before["x"] * 0.02)


def drawn(fill):
    given = inputs(CONTRACT, CONTRACT.sizes, Dice(0), "none")
    return given, filled(CONTRACT, given, fill)


@pytest.mark.parametrize(
    ("fill", "first"),
    [
        ("arange", [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]),
        ("ones", [[1, 1, 1, 1]] * 3),
        ("eye", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
    ],
)
def test_fills(fill, first):
    """Data is filled; indices and masks stay as they were drawn."""
    before, after = drawn(fill)
    assert after["x"].tolist()[0] == first
    assert after["x"].dtype is torch.float32
    assert torch.equal(after["ids"], before["ids"])
    assert after["mask"] is None
    assert after["row"].shape == (4,)


def test_noise_is_what_is_drawn():
    """The same objects, so that nothing changes where nothing was asked."""
    before, after = drawn("noise")
    assert after["x"] is before["x"]

"""How a wrong value differs from the right one."""

import math

import pytest
import torch

from attnlab.diagnosis.relations import name_constant, relate

SIZES = {"B": 2, "S": 5, "H": 3, "hd": 7, "D": 21}
RIGHT = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
LATER = torch.ones(5, 5, dtype=torch.bool).triu(1)
MASKED = RIGHT.masked_fill(LATER, -torch.inf)
ANGLES = torch.outer(torch.arange(1.0, 6.0), 10000.0 ** -(torch.arange(4.0) / 4)).double()


@pytest.mark.parametrize(
    ("mine", "theirs", "kind", "says"),
    [
        (RIGHT * math.sqrt(7), RIGHT, "scale", "which is sqrt(hd)"),
        (RIGHT / 21, RIGHT, "scale", "times too small, which is D"),
        (RIGHT * 3.3, RIGHT, "scale", "3.3 times too large"),
        (-RIGHT, RIGHT, "sign", "negative"),
        (RIGHT + 0.5, RIGHT, "offset", "off by 0.5"),
        (0 * RIGHT, RIGHT, "dropped", "zero"),
        (RIGHT.mT, RIGHT, "transposed", "axes -2 and -1"),
        (RIGHT.roll(2, 1), RIGHT, "rolled", "rolled by 2 along axis -2"),
        (RIGHT.flip(1), RIGHT, "flipped", "axis -2"),
        (RIGHT[:, [0, 2, 4, 1, 3]], RIGHT, "order", "axis -2"),
        (RIGHT.softmax(1), RIGHT.softmax(2), "softmax-axis", "along axis -2, not along axis -1"),
        (ANGLES.sin(), ANGLES.cos(), "sine-cosine", "sine"),
        (
            torch.outer(torch.arange(1.0, 6.0), 1000.0 ** -(torch.arange(4.0) / 4)),
            ANGLES,
            "base",
            "another base",
        ),
        (RIGHT, MASKED, "mask-missing", "closes 40 %"),
        (-MASKED, MASKED, "sign", "negative"),
        (RIGHT.masked_fill(~LATER, -torch.inf), MASKED, "mask-inverted", "turned round"),
        (RIGHT.masked_fill(LATER.mT, -torch.inf), MASKED, "mask-transposed", "transpose"),
        (LATER.triu(2).double(), LATER.double(), "mask-diagonal", "off"),
        (RIGHT.masked_fill(LATER & (RIGHT > 0), -torch.inf), MASKED, "mask-too-weak", "fewer"),
        (RIGHT.masked_fill(LATER | (RIGHT > 0), -torch.inf), MASKED, "mask-too-strong", "more"),
    ],
)
def test_a_relation_is_named(mine, theirs, kind, says):
    """By its kind, and in words with sizes and axes."""
    found = relate(mine, theirs, SIZES)
    assert found is not None
    assert (found.kind, says in found.says) == (kind, True), found


def test_scrambled_numbers_are_the_last_that_is_said():
    """They are the right ones at other places."""
    mixed = RIGHT.flatten()[torch.randperm(75, generator=torch.Generator().manual_seed(0))]
    assert relate(mixed.reshape(3, 5, 5), RIGHT, SIZES).kind == "axes-mixed"


def test_what_has_no_relation_gets_none():
    """Nothing is invented."""
    assert relate(RIGHT.sin(), RIGHT, SIZES) is None
    assert relate(RIGHT[:2], RIGHT, SIZES) is None


@pytest.mark.parametrize(
    ("factor", "name"),
    [(7**0.5, "sqrt(hd)"), (1 / 21, "1/D"), (2.0, "2"), (3.0, "H"), (1.2345, "1.234")],
)
def test_a_constant_is_named_by_the_sizes(factor, name):
    """hd, D and H first, numbers last."""
    assert name_constant(factor, SIZES) == name

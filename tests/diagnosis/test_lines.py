"""The line to name where a plain number is wrong, or a step is missing."""

import pytest

from attnlab.diagnosis.lines import definition_line, line_after

TEXT = """\
import math

class Net:
    def __init__(self, dim, heads, base=1000.0):
        self.width = dim // heads
        self.scale = math.sqrt(dim)
        self.base = base
        self.made = build(dim)

    def forward(self, q, k):
        q = q.view(self.width)
        scores = q @ k / self.scale
        scores = scores / self.width
        angles = q ** self.base
        q = q * self.made
        return scores
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (12, 6),  # self.scale is read here alone
        (13, None),  # self.width is read elsewhere, too, where it is right
        (14, 4),  # by way of an argument, its default
        (15, None),  # what a function made is no plain number
        (11, None),
        (1, None),
    ],
)
def test_a_number_is_wrong_where_it_is_defined(line, found):
    """If no other line reads it."""
    assert definition_line(TEXT, line) == found


def test_a_missing_step_belongs_where_nothing_is_computed():
    """`return scores` instead of `return mask(scores)`; else the line before is named."""
    assert line_after(TEXT, 15, busy=[11, 12, 13, 14, 15]) == 16
    assert line_after(TEXT, 12, busy=[11, 12, 13, 14, 15]) == 12
    assert line_after("not python (", 1, busy=[]) == 1

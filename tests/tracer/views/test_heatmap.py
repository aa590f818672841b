"""A tensor as a small matrix."""

import math

import pytest
import torch

from attnlab.records import from_json, to_json
from attnlab.records.trace import Heat
from attnlab.tracer.views.heatmap import MOST, slice_text, to_heat, unwrap


@pytest.mark.parametrize(
    ("shape", "rows", "columns", "said"),
    [
        ((), 1, 1, ""),
        ((3,), 1, 3, ""),
        ((2, 3), 2, 3, ""),
        ((4, 2, 3), 2, 3, "[0, :, :]"),
        ((5, 4, 2, 3), 2, 3, "[0, 0, :, :]"),
    ],
)
def test_the_last_two_axes(shape, rows, columns, said):
    """The other axes are held at 0, and it is said which part that is."""
    t = torch.arange(math.prod(shape)).reshape(shape)
    got = to_heat(t, "t")
    assert (len(got.rows), len(got.rows[0]), slice_text(t)) == (rows, columns, said)
    assert got.rows[0][0] == 0


def test_axes_bear_the_names_that_they_have():
    """Names where they are known, sizes else; none for what is not there."""
    t = torch.zeros(2, 3, 4)
    assert to_heat(t, "t", ("B", "S", "D")).axes == ("S", "D")
    assert to_heat(t, "t").axes == ("3", "4")
    assert to_heat(t[0, 0], "t").axes == ("", "4")


def test_a_large_matrix_is_cut():
    """No page can draw 512 columns."""
    got = to_heat(torch.zeros(3, MOST + 1), "t")
    assert (len(got.rows[0]), got.cut, to_heat(torch.zeros(3, MOST), "t").cut) == (
        MOST,
        True,
        False,
    )


def test_what_is_no_number_travels():
    """A mask's -inf and a NaN survive the way through JSON; booleans are 0 and 1."""
    got = to_heat(torch.tensor([[math.nan, -math.inf, 1.0]]), "t")
    again = from_json(Heat, to_json(got)).rows[0]
    assert (math.isnan(again[0]), again[1:]) == (True, (-math.inf, 1.0))
    assert to_heat(torch.tensor([True, False]), "t").rows == ((1, 0),)
    assert to_heat(torch.tensor([3 + 4j]), "t").rows == ((5,),)
    assert to_heat(torch.zeros(0, 3), "t").rows == ()


def test_the_batch_of_a_vmap_stands_first():
    """A wrapped tensor is shown as all that it stands for, whichever axis is mapped."""
    shapes = []
    torch.vmap(lambda t: shapes.append(tuple(unwrap(t).shape)) or t, in_dims=1)(
        torch.zeros(2, 5, 3)
    )
    assert shapes == [(5, 2, 3)]

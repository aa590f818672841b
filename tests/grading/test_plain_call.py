"""Which failures a plain call shows, so that `attnlab trace` is advised for these alone."""

from dataclasses import replace

import pytest
from modules import PLAIN, inspected, module

WIDTH = "self.w = nn.Linear(width, width)"


def first(forward, contract=PLAIN, reference=None):
    text = module(forward, WIDTH)
    return inspected(text, contract, reference=reference, stages=("check",)).checks[0]


def test_a_crash_of_every_call_is_shown():
    """The trace ends at the same line."""
    found = first("raise ValueError('no')")
    assert (found.reason, found.shown) == ("crashed", "float32")


def test_a_crash_in_another_dtype_is_shown_in_that_one():
    """float64 is right, float16 is the first that raises."""
    contract = replace(PLAIN, dtypes=("float64", "float16"))
    found = first("return self.w(x.masked_fill(x > 9, -1e9))", contract)
    assert (found.id, found.shown) == ("dtype-parity", "float16")


@pytest.mark.parametrize(
    "forward",
    [
        "if not x.is_contiguous(): raise ValueError('strides')\nreturn self.w(x)",
        "if self.training: raise ValueError('training')\nreturn self.w(x)",
    ],
)
def test_a_crash_of_another_call_is_not_shown(forward):
    """Strides and the training mode are those of the check's own calls."""
    found = first(forward)
    assert (found.reason, found.shown) == ("crashed", "")


@pytest.mark.parametrize(
    ("forward", "shown"), [("return self.w(x) / 0", "float32"), ("return self.w(x) / (x < 20)", "")]
)
def test_numbers_are_shown_where_usual_inputs_give_them(forward, shown):
    """What only large inputs make infinite is not in a trace of usual ones."""
    found = first(forward)
    assert (found.id, found.shown) == ("finite", shown)


def test_a_right_module_shows_nothing():
    """Nothing failed that a call could show."""
    assert first("return self.w(x)").shown == ""

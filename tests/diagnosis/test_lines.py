"""The line to name where a plain number is wrong, or a step is missing."""

import pytest

from attnlab.diagnosis.lines import (
    definition_line,
    is_in_function,
    line_after,
    names_number,
    nearest_difference,
    replacing_lines,
    takes_argument,
)

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


def test_what_both_files_have_is_not_what_is_wrong():
    """Where they are the same but for a few places, one of these is named; comments are none."""
    mine = TEXT.replace("/ self.width", "/ self.scale").replace("import math", "import math  # !")
    assert nearest_difference(mine, TEXT, 15) == 13
    assert nearest_difference(mine, TEXT, 13) == 13
    assert nearest_difference(TEXT, TEXT, 15) is None
    assert nearest_difference(TEXT.upper(), TEXT, 15) is None


def test_what_is_left_out_is_at_the_line_that_follows():
    """There the reference has one more."""
    gone = TEXT.replace("        scores = scores / self.width\n", "")
    assert nearest_difference(gone, TEXT, 11) == 13


def test_a_helper_takes_what_its_caller_hands_on():
    """Not where it reads its own attributes."""
    assert is_in_function(TEXT, 12, 11)
    assert not is_in_function(TEXT, 12, 6)
    assert not takes_argument(TEXT, 12)
    assert takes_argument("def norm(x, gain):\n    return x * gain\n", 2)
    assert not takes_argument("def norm(x, gain):\n    return math.pi\n", 2)


def test_a_line_that_takes_several_in_its_place_has_all_of_them():
    """One of two lines that replace a line is no fix; a line for a line, or none, is as it is."""
    same = "\n".join(f"a{n} = {n}" for n in range(20))
    one, two = f"{same}\nx = y\nreturn x", f"{same}\n\ny = z\nx = y + 1\nreturn x"
    assert replacing_lines(one, two, 21) == (22, 23)
    assert replacing_lines(two, one, 22) == ()
    assert replacing_lines(one, two, 22) == ()


HANDED = """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return ctx.scale * grad, None


def attend(q, k, factor):
    return q @ k.mT * factor


class Net(nn.Module):
    def __init__(self, dim, reach=16):
        self.scale, self.far = dim**0.5, reach
        self.factor = dim**-0.5
        self.reach = reach

    def forward(self, x, q, k):
        x = Scaled.apply(x, self.factor)
        return x, attend(q, k, self.near(q, self.reach))
"""


def test_a_number_that_shapes_something_else_is_not_wrong_where_it_is_defined():
    """The width of a head that other lines split by is right; one that is only handed on may not
    be."""
    text = """
class Net(nn.Module):
    def __init__(self, width, heads):
        self.heads = heads
        self.hd = width // heads
    def split(self, z):
        return z.unflatten(-1, (self.heads, self.hd))
    def scores(self, q, k):
        return q @ k.mT / math.sqrt(self.hd)
"""
    line = next(n for n, at in enumerate(text.splitlines(), 1) if "sqrt" in at)
    assert definition_line(text, line) is None
    assert definition_line(text.replace("z.unflatten(-1, (self.heads, self.hd))", "z"), line) == 5


def test_a_number_is_followed_through_calls_of_the_file():
    """An argument of a function, or of an operation with a backward of its own, is what its only
    call gives; what a call computes is no number of the file."""
    lines = {text.strip(): n for n, text in enumerate(HANDED.splitlines(), 1)}
    assert definition_line(HANDED, lines["return x * scale"]) == lines["self.factor = dim**-0.5"]
    assert definition_line(HANDED, lines["return q @ k.mT * factor"]) is None


def test_what_is_a_plain_number_is_known_by_its_definition():
    """By way of the constructor's default; a tensor is none."""
    line = next(n for n, t in enumerate(HANDED.splitlines(), 1) if "self.near(" in t)
    assert names_number(HANDED, line, "self.reach")
    assert not names_number(HANDED, line, "q")
    assert not names_number("not python (", 1, "q")

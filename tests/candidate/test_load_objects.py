"""Objects as constructor arguments: sizes for symbols, and the class that makes them."""

import pytest

from attnlab.candidate.load import make_argument
from attnlab.sizes import constructor_arguments, fill_symbols


class Config:
    def __init__(self, width=1, act="gelu"):
        self.width, self.act = width, act


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Config(n_embd=D, act='relu')", "Config(n_embd=12, act='relu')"),
        ("Config(n_embd=Q)", "Config(n_embd=Q)"),
        ("Config()", "Config()"),
        ("(3, D, D)", "(3, 12, 12)"),
        ("gelu", "gelu"),
        ("f(1)", "f(1)"),
        ("not) python(", "not) python("),
        ("a b c)", "a b c)"),
    ],
)
def test_symbols_inside_an_object_are_sizes(text, said):
    """Text that is no object stays as it is."""
    assert fill_symbols(text, {"D": 12}) == said
    assert constructor_arguments({"config": text}, {"D": 12}) == {"config": said}


def test_an_object_is_made_by_its_class():
    """Where the class is known; else the text goes to the constructor."""
    config = make_argument("Config(width=12, act='relu')", {"Config": Config})
    assert (config.width, config.act) == (12, "relu")
    assert make_argument("Config(width=12)", {}) == "Config(width=12)"
    assert make_argument("(3, 12)", {}) == (3, 12)
    assert make_argument("(3, Q)", {}) == "(3, Q)"
    assert make_argument("gelu", {"gelu": Config}) == "gelu"
    assert make_argument(3, {}) == 3


def test_nothing_is_evaluated():
    """Only plain values stand inside an object: no call, no name."""
    with pytest.raises(ValueError, match="malformed"):
        make_argument("Config(width=open('x'))", {"Config": Config})

"""Commands that can be pasted: quoting, merging, and inputs as flags say them."""

import shlex

import pytest

from attnlab.catalogue.inputs import parse_input
from attnlab.target.command_line import TraceCommand, input_flag, quote_word


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("my.py:Net", "my.py:Net"),
        ("dim=8", "dim=8"),
        ("x: B S D", '"x: B S D"'),
        ("act='gelu'", "\"act='gelu'\""),
        ("two words/my.py", '"two words/my.py"'),
        ('a="b"', "'a=\"b\"'"),
        ("cost$", "'cost$'"),
        ("", '""'),
    ],
)
def test_words_are_quoted_as_little_as_possible(word, said):
    """What a shell makes of it is the word itself."""
    assert quote_word(word) == said
    assert shlex.split(said) == [word]


def test_more_is_joined_to_what_was_typed():
    """One flag of each kind, inputs one by one, the rest behind."""
    typed = TraceCommand(
        target="m.py", init="a=1", inputs=("x: B",), case="c.toml", rest=("--dtype", "f")
    )
    said = typed.with_flags(init="b=2", sizes="D=8", inputs=("y = 3",)).command()
    assert said == (
        'attnlab trace m.py --case c.toml --init "a=1, b=2" --sizes D=8 '
        '--input "x: B" --input "y = 3" --dtype f'
    )


@pytest.mark.parametrize(
    "said",
    ["x: B S D", "ids: B S int", "mask: B S S bool forbids", "m: B S bool allows additive optional",
     "segments: B S int segments"],
)  # fmt: skip
def test_inputs_read_back(said):
    """What is shown of a guess can be typed as it stands."""
    assert input_flag(parse_input(said)) == said
    assert parse_input(input_flag(parse_input(said))) == parse_input(said)

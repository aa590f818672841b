"""The grammar of --input, --sizes and --init."""

import pytest

from attnlab.catalogue.inputs import parse_input
from attnlab.catalogue.schema import TABLES, build_contract, parse_init, parse_sizes
from attnlab.errors import Refused
from attnlab.records import Cache, Input


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("x: B S D", Input(name="x", axes=("B", "S", "D"))),
        ("ids:B S int", Input(name="ids", axes=("B", "S"), dtype="int")),
        ("qkv: B 1 3*D 4", Input(name="qkv", axes=("B", "1", "3*D", "4"))),
        ("pad: B S bool", Input(name="pad", axes=("B", "S"), dtype="bool")),
        (
            "m: B S S bool forbids optional",
            Input(name="m", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True),
        ),
        (
            "m: S S bool allows",
            Input(name="m", axes=("S", "S"), dtype="bool", role="mask", forbids=False),
        ),
    ],
)
def test_an_input_is_said_in_one_line(text, entry):
    """The same words as in the [inputs] of a challenge.toml."""
    assert parse_input(text) == entry


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("B S D", '--input "B S D" names no argument of forward'),
        ("3x: B", '--input "3x: B" names no argument'),
        ("x:", '--input "x:": expected text on one line'),
        ("x: int", '--input "x: int": names no axes'),
        ("x: B,S,D", '--input "x: B,S,D": B,S,D is not an axis'),
        ("x: B 0", '--input "x: B 0": 0 is not an axis'),
        ("x: B int float", '--input "x: B int float": contradicts itself'),
        ("m: S S forbids", '--input "m: S S forbids": forbids needs the word bool'),
    ],
)
def test_a_wrong_input_is_quoted_with_the_right_form(text, message):
    """The message quotes what was typed; the hint shows the form."""
    with pytest.raises(Refused) as caught:
        parse_input(text)
    assert caught.value.message.startswith(message)
    assert caught.value.where == "--input"


def test_sizes_are_pairs():
    """Spaces and a comma at the end do not matter."""
    assert parse_sizes(" D=182,H = 7, ") == {"D": 182, "H": 7}
    assert parse_sizes("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("D", "--sizes: cannot read 'D'"),
        ("D=8 H=2", "--sizes: cannot read 'D=8 H=2'"),
        ("D=8;H=2", "--sizes: cannot read"),
        ("D=0", "--sizes: D=0 is not a size"),
        ("D=-3", "--sizes: D=-3 is not a size"),
        ("D=1.5", "--sizes: D=1.5 is not a size"),
        ("D=wide", "--sizes: D=wide is not a size"),
        ("D=8, D=9", "--sizes: D is given twice"),
        ("=8", "--sizes: cannot read '=8'"),
    ],
)
def test_wrong_sizes_are_refused(text, message):
    """A size is a whole number of elements."""
    with pytest.raises(Refused) as caught:
        parse_sizes(text)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_init_takes_numbers_truths_texts_and_symbols():
    """What Python would read, quotes for text, a bare word for a size."""
    found = parse_init("D=182, eps=1e-5, bias=False, act=\"ge, lu\", name='x', width=D, n=-1")
    assert found == {
        "D": 182, "eps": 1e-5, "bias": False, "act": "ge, lu", "name": "x", "width": "D", "n": -1,
    }  # fmt: skip
    assert type(found["D"]) is int


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("k=None", "Leave k out to keep its default."),
        ("k=[1]", "Values are numbers, True, False, text in quotes"),
        ("k=nan", "Values are numbers"),
        ("k=1e999", "Values are numbers"),
        ("k='open", "NAME=VALUE"),
        ("k=f(x)", "Values are numbers"),
        ("k=" + "9" * 5000, "Values are numbers"),
    ],
)
def test_init_values_that_cannot_travel_are_refused(text, hint):
    """What is no plain value cannot be passed by a flag."""
    with pytest.raises(Refused) as caught:
        parse_init(text)
    assert hint in caught.value.hint


# ---------------------------------------------------------------- roles, caches


@pytest.mark.parametrize(
    ("said", "role", "additive"),
    [
        ("B S int segments", "segments", False),
        ("S int positions", "positions", False),
        ("B S S bool forbids additive optional", "mask", True),
        ("B S", "data", False),
    ],
)
def test_what_an_input_is_for(said, role, additive):
    """The last words say which role it has."""
    found = parse_input(f"it: {said}")
    assert (found.role, found.additive) == (role, additive)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("B S segments", "segments needs the word int"),
        ("B S int additive", "additive needs forbids or allows"),
        ("B S int segments positions", "contradicts itself"),
    ],
)
def test_roles_that_do_not_fit(said, message):
    """Each is told what it needs."""
    with pytest.raises(Refused, match=message):
        parse_input(f"it: {said}")


def test_a_cache_and_what_is_left_out_of_it():
    """Defaults are those of the record."""
    read = TABLES["contract"]({"cache": {"form": "given", "new": "new_cache"}})
    found = build_contract({"contract": read})
    assert found.cache == Cache(form="given", new="new_cache", argument="cache")
    assert build_contract({}).cache is None

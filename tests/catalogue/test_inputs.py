"""Arguments that hold several tensors: tuples, lists and dicts in one line."""

import pytest

from attnlab.catalogue.inputs import parse_input, parse_inputs
from attnlab.catalogue.schema import TABLES, build_contract
from attnlab.errors import Refused
from attnlab.records import Container, Input


def test_a_container_and_its_parts():
    """The container is named first, then its tensors, by what stands between the brackets."""
    held, key, value = parse_inputs("cache: tuple(B Hkv T hd, B T int)")
    assert held == Container(name="cache", kind="tuple", keys=("0", "1"))
    assert key == Input(name="cache.0", axes=("B", "Hkv", "T", "hd"))
    assert value == Input(name="cache.1", axes=("B", "T"), dtype="int")
    assert value.argument == "cache"


def test_containers_in_a_container():
    """A cache of several layers is a list of what each layer keeps; a table may say it too."""
    text = "list( dict(k=B T D, v = B T D), tuple(B T D) )"
    found = build_contract({"inputs": TABLES["inputs"]({"past": text})})
    assert [(c.name, c.kind, c.keys) for c in found.containers] == [
        ("past", "list", ("0", "1")),
        ("past.0", "dict", ("k", "v")),
        ("past.1", "tuple", ("0",)),
    ]
    assert [i.name for i in found.inputs] == ["past.0.k", "past.0.v", "past.1.0"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("tuple(B S D, B S", "its parentheses do not match"),
        ("tuple(B S), tuple(B S)", "its parentheses do not match"),
        ("B S)(", "its parentheses do not match"),
        ("tuple( )", "it has no parts"),
        ("tuple(B S D,)", "part 2 is empty"),
        ("dict(k=B S, v=)", "part 2 is empty"),
        ("dict(B S D)", '"B S D" has no name'),
        ("dict(k=B S, k=B S)", "k is there twice"),
        ("tuple(k=B S)", "only the parts of a dict have names, such as k"),
        ("set(B S)", "only tuple, list or dict can take parentheses"),
        ("tuple(B S) float", "only tuple, list or dict can take parentheses"),
        ("list(tuple(list(B S)))", "a container holds tensors, or containers of tensors"),
        ("tuple(B S, B 0)", "0 is not an axis"),
        ("tuple(= 3)", "= is not an axis"),
        ("= 3", "= is not an axis"),
    ],
)
def test_a_wrong_container_is_quoted(said, message):
    """One line says what is wrong with what was typed, and the hint shows the right form."""
    with pytest.raises(Refused) as caught:
        parse_inputs(f"cache: {said}")
    assert caught.value.message == f'--input "cache: {said}": {message}'
    assert caught.value.hint


def test_assertions_take_tensors_alone():
    """Where one tensor is needed, a container is refused."""
    with pytest.raises(Refused, match="one tensor is expected"):
        parse_input("cache: tuple(B S D)")

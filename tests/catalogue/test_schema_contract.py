"""What a contract can say of positions and of the module itself, and what it cannot."""

from __future__ import annotations

import tomllib

import pytest

from attnlab.catalogue.contract_facts import FACTS, known_facts
from attnlab.catalogue.schema import TABLES, build_contract, check_consistency
from attnlab.catalogue.toml_rules import Document, table
from attnlab.checks.base import load_checks, parts_of
from attnlab.errors import Unreadable
from attnlab.records import Contract, Position

BASE = """
[sizes]
B = 2
S = 4
D = 8
R = 2
C = 2
[inputs]
x = "B S D"
[output]
axes = "B S D"
[contract]
"""


def read(text: str) -> Contract:
    whole = BASE + text
    document = Document(file="case.toml", text=whole, data=tomllib.loads(whole))
    contract = build_contract(document.read(table(TABLES)))
    check_consistency(document, contract)
    return contract


def refused(text: str) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read(text)
    return caught.value


def test_every_word_about_the_module_reaches_the_record():
    """dtypes, padding_idx, tied, state_dict and forbidden, as they are written."""
    contract = read("""
dtypes = ["float64", "bfloat16"]
padding_idx = 0
tied = [["token.weight", "head.weight"]]
state_dict = ["proj.weight"]
multiples = { D = 4 }
forbidden = ["softmax", "nn.Linear", "S S"]
promises = ["ordered", "relative", "any-device", "dropout", "unbiased-dropout"]
""")
    assert contract.dtypes == ("float64", "bfloat16")
    assert contract.padding_idx == 0
    assert contract.tied == (("token.weight", "head.weight"),)
    assert contract.state_dict == ("proj.weight",)
    assert contract.multiples == {"D": 4}
    assert contract.forbidden == ("softmax", "nn.Linear", "S S")
    assert {"dtypes", "padding", "tied", "forbidden"} <= known_facts(contract)
    assert {"ordered", "relative", "any-device", "unbiased-dropout"} <= known_facts(contract)


def test_every_word_about_positions_reaches_the_record():
    """The whole table, and what is left out keeps its default."""
    contract = read("""
[contract.position]
kind = "t5"
form = "bias"
base = 500
layout = "half"
causal = true
buckets = 16
distance = 40
grid = ["R", "C"]
beyond = "extend"
""")
    assert contract.position == Position(
        kind="t5", form="bias", base=500.0, layout="half", causal=True, buckets=16, distance=40,
        grid=("R", "C"), beyond="extend",
    )  # fmt: skip
    assert read("[contract.position]").position == Position()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('dtypes = ["float32"]', 'contract.dtypes[0] = "float32": expected'),
        (
            "defaults = { absent = 3 }",
            "contract.defaults.absent: this argument cannot have a default",
        ),
        ("defaults = { absent = 0 }", "contract.defaults.absent = 0: expected"),
        ("multiples = { S = 4 }", "contract.multiples.S: S cannot be a multiple"),
        ("multiples = { D = 5 }", "contract.multiples.D = 5: the example is not a multiple"),
        ("multiples = { W = 2 }", "contract.multiples.W: W is not in [sizes]"),
        ("padding_idx = -1", "contract.padding_idx = -1: expected"),
        ('tied = [["alone"]]', "contract.tied[0] = a list of 1: expected a list of at least 2"),
        ('state_dict = ["a b"]', 'contract.state_dict[0] = "a b": expected the dotted name'),
        ('forbidden = ["S T"]', "contract.forbidden: T is not in [sizes]"),
        ("[contract.position]\ncausal = 1", "contract.position.causal = 1: expected true or false"),
        ('[contract.position]\ngrid = ["R"]', "contract.position.grid = a list of 1: expected"),
        ('[contract.position]\ngrid = ["R", "W"]', "contract.position.grid: W is not in [sizes]"),
        ('[contract.position]\nkind = "rope"', 'contract.position.kind = "rope": expected'),
        ('[contract.position]\nbeyond = "wrap"', 'contract.position.beyond = "wrap": expected'),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text: str, message: str):
    """The key, the value and what would be right."""
    error = refused(text)
    assert error.message.startswith(message)
    assert error.where.startswith("case.toml:")


NEEDS = {
    "position": Position(),
    "table": Position(form="added"),
    "rotated": Position(kind="rotary", form="rotated"),
    "places": Position(kind="other", form="rotated"),
    "bias": Position(kind="alibi", form="bias"),
    "ordered": Position(kind="learned"),
    "relative": Position(kind="t5", form="bias"),
    "monotone": Position(kind="alibi", form="bias"),
    "bucketed": Position(kind="t5", form="bias"),
    "grid": Position(kind="other", grid=("R", "C")),
    "long": Position(kind="rotary", form="rotated"),
    "beyond": Position(beyond="error"),
}


@pytest.mark.parametrize("need", NEEDS)
def test_what_is_said_of_positions_gives_checks_their_needs(need: str):
    """And without a word of positions no such check is made."""
    assert need in known_facts(Contract(position=NEEDS[need]))
    assert need not in known_facts(Contract())


def test_learned_rows_and_grids_have_no_formula():
    """`formula-match` would hold them to one that nobody stated."""
    assert "position" not in known_facts(Contract(position=Position(kind="learned")))
    assert "position" not in known_facts(Contract(position=Position(grid=("R", "C"))))
    assert "long" not in known_facts(Contract(position=Position(kind="learned")))


def test_a_check_that_is_not_made_says_why():
    """Every need of every check has a sentence, also for a contract that says nothing."""
    for part in parts_of(load_checks()):
        assert set(part.needs) <= FACTS.keys(), part.id
        assert part.missing(known_facts(Contract())) in {fact.missing for fact in FACTS.values()}


def test_a_promise_that_adds_to_another_needs_it():
    """`same-dropout` alone would be skipped without a word."""
    error = refused('promises = ["causal", "same-dropout"]')
    assert error.message == 'contract.promises[1] = "same-dropout": needs the promise dropout'
    assert read('promises = ["dropout", "same-dropout"]').promises == ("dropout", "same-dropout")


def test_a_cache_needs_a_module_that_is_causal():
    """Else all that a cache is looked at for would be left out without a word."""
    error = refused("[contract.cache]")
    assert ": a module with a cache is causal" in error.message
    assert "promises" in error.hint
    assert read('promises = ["causal"]\n[contract.cache]').cache is not None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("prt(proj.weight, 0, 3)", "prt is none of cat, "),
        ("part(proj.weight, 0, 3", "lacks a closing bracket"),
        ("t(proj.weight) 2", "goes on after its end"),
    ],
)
def test_a_map_of_weights_can_be_read(said, why):
    """Where it cannot, another one would be found, and nobody would know."""
    error = refused(f'[weights]\nwq.weight = "{said}"')
    assert f'= "{said}" cannot be read' in error.message
    assert why in error.hint

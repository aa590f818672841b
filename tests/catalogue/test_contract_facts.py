"""What a contract says of a module: roles of inputs, axes of queries and keys."""

from dataclasses import replace

import pytest

from attnlab.catalogue.contract_facts import (
    FACTS,
    PROMISES,
    has_query_axis,
    key_axis,
    known_facts,
    query_axis,
)
from attnlab.checks.base import load_checks, parts_of
from attnlab.records import Cache, Contract, Input

X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask")
CONTEXT = Input(name="context", axes=("B", "Sk", "D"))
SELF = Contract(sizes={"B": 2, "S": 4, "H": 2, "D": 8}, inputs=(X, MASK), output=("B", "S", "D"))
CROSS = replace(
    SELF,
    inputs=(replace(X, axes=("B", "Sq", "D")), CONTEXT, replace(MASK, axes=("B", "1", "1", "Sk"))),
    output=("B", "Sq", "D"),
)


def test_every_need_is_a_fact_with_a_reason():
    """A check that does not apply says why."""
    needs = {need for part in parts_of(load_checks()) for need in part.needs}
    assert needs <= set(FACTS)
    assert not [need for need in needs if not FACTS[need].missing]


def test_every_fact_is_needed_and_can_hold():
    """A fact that no check needs is a promise that a check reads, or it goes."""
    needs = {need for part in parts_of(load_checks()) for need in part.needs}
    assert {name for name, fact in FACTS.items() if not fact.promise} <= needs
    assert {name for name in FACTS.keys() - PROMISES if not FACTS[name].holds} == {"reference"}
    assert not [name for name in PROMISES if name not in known_facts(Contract(promises=(name,)))]


def test_queries_and_keys():
    """Of one sequence, of two, and of one with keys from a cache."""
    assert (query_axis(SELF), key_axis(SELF)) == ("S", "S")
    assert (query_axis(CROSS), key_axis(CROSS)) == ("Sq", "Sk")
    steps = replace(SELF, inputs=(X, replace(MASK, axes=("1", "1", "S", "Sk"))), cache=Cache())
    assert (query_axis(steps), key_axis(steps)) == ("S", "S")


@pytest.mark.parametrize(
    ("axes", "causal"),
    [(("B", "S", "S"), True), (("S", "Sk"), True), (("B", "S"), False), (("B", "1", "Sk"), False)],
)
def test_a_mask_with_queries_can_be_causal(axes, causal):
    """The axis before that of the keys says so."""
    assert has_query_axis(replace(MASK, axes=axes)) is causal


@pytest.mark.parametrize(
    ("contract", "has", "lacks"),
    [
        (SELF, {"mask", "keys", "causal", "attention", "heads"}, {"context", "cache", "additive"}),
        (CROSS, {"context", "keys", "attention"}, {"sequence", "causal", "packing"}),
        (replace(SELF, inputs=(X,)), {"sequence"}, {"mask", "attention", "keys"}),
        (replace(SELF, inputs=(X,), promises=("causal",)), {"attention", "causal"}, {"mask"}),
        (replace(SELF, promises=("local",)), {"mask"}, {"all-keys"}),
        (replace(SELF, cache=Cache()), {"cache", "beams"}, set()),
        (replace(SELF, cache=Cache(form="inner")), {"cache"}, {"beams"}),
        (replace(SELF, inputs=(X, replace(MASK, additive=True))), {"additive"}, set()),
        (
            replace(SELF, inputs=(X, Input(name="s", axes=("B", "S"), role="segments"))),
            {"packing"},
            {"attention"},
        ),
    ],
)
def test_what_a_contract_has(contract, has, lacks):
    """Checks apply by these words."""
    assert known_facts(contract) >= has
    assert known_facts(contract).isdisjoint(lacks)

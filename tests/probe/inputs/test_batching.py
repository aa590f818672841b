"""Calls in one batch give what the calls give one by one, in their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.probe.inputs.batching import call_in_batch
from attnlab.probe.inputs.draw import Dice, inputs
from attnlab.records import Contract, Input
from attnlab.references import unit

SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}
X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True)
CONTRACT = Contract(sizes=SIZES, inputs=(X, MASK), output=("B", "S", "D"))
KINDS = st.lists(st.tuples(st.sampled_from(["none", "random", "causal"]), st.integers(1, 3)))


class Counting:
    """A reference that knows how many sequences it was given each time."""

    def __init__(self):
        self.module = unit("MultiHeadSelfAttention")(8, 2).double()
        self.batches = []

    def __call__(self, given):
        self.batches.append(given["x"].shape[0])
        with torch.no_grad():
            return self.module(*given.values())


def drawn(kinds, contract=CONTRACT):
    dice = Dice(0)
    several = [inputs(contract, {**SIZES, "B": batch}, dice, mask) for mask, batch in kinds]
    return [{**given, "x": given["x"].double()} for given in several]


@settings(max_examples=40, deadline=None)
@given(KINDS)
def test_each_has_its_own_output(kinds):
    """Whatever masks and batches are mixed; forms that are alike share a call."""
    several, call = drawn(kinds), Counting()
    found = call_in_batch(CONTRACT, several, call)
    assert len(call.batches) == len({(mask == "none", batch) for mask, batch in kinds})
    assert sum(call.batches) == sum(batch for _, batch in kinds)
    for inputs_, out in zip(several, found, strict=True):
        torch.testing.assert_close(out, Counting.__call__(call, inputs_), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "contract",
    [
        replace(CONTRACT, output=("S", "B", "D")),
        replace(CONTRACT, inputs=(X, replace(MASK, axes=("S", "S")))),
    ],
)
def test_what_has_no_batch_first_is_called_by_itself(contract):
    """A mask that all sequences share, an output whose batch stands elsewhere."""
    several = [{"x": torch.full((1, 2), float(n)), "mask": None} for n in range(3)]
    batches = []

    def call(given):
        batches.append(len(given["x"]))
        return given["x"] * 2

    found = call_in_batch(contract, several, call)
    assert batches == [1, 1, 1]
    assert [out[0, 0].item() for out in found] == [0.0, 2.0, 4.0]

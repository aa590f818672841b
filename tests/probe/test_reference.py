"""The right answer: in float64, in float32 on request, and with masks as each side means them."""

import pytest
import torch

from attnlab.candidate.host import LocalHost
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.reference import BadReference, FileReference, UnitReference
from attnlab.records import Code, Contract

SOLUTION = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x) * 1e4 + x - self.linear(x) * 1e4
"""
WIDTH = 8


def in_file(wide):
    reference = FileReference(
        Code(file="solution.py", text=SOLUTION, name="M"),
        LocalHost(),
        Contract(dtypes=("float64",) if wide else ()),
    )
    reference.equip({"width": WIDTH}, Dice(1))
    return reference


def test_a_solution_answers_in_float64_where_it_can():
    """A candidate that is more exact than a solution in float32 is not to be blamed for it."""
    x = Dice(2).normal((2, 3, WIDTH))
    exact, rounded = in_file(wide=True), in_file(wide=False)
    assert (exact.call({"x": x}) - x.double()).abs().max() < 1e-10
    assert (rounded.call({"x": x}) - x.double()).abs().max() > 1e-5
    cotangent = torch.ones_like(x)
    found = exact.gradients({"x": x}, cotangent).inputs["x"]
    assert (found - 1).abs().max() < 1e-9


def test_it_still_tells_what_float32_gives():
    """That is how far a module may be off that does the same; afterwards it is exact again."""
    x = {"x": Dice(2).normal((2, 3, WIDTH))}
    exact = in_file(wide=True)
    before = exact.call(x)
    assert (exact.rounded(x) - before).abs().max() > 1e-5
    assert torch.equal(exact.call(x), before)
    assert torch.equal(in_file(wide=False).rounded(x), in_file(wide=False).call(x))


@pytest.fixture
def unit():
    reference = UnitReference("MultiHeadSelfAttention")
    reference.equip({"embed_dim": WIDTH, "num_heads": 2}, Dice(1))
    return reference


def test_a_unit_rounds_on_request(unit):
    """Its own float64 is what it answers in before and after."""
    inputs = {"x": Dice(2).normal((2, 3, WIDTH)), "mask": None}
    before = unit.call(inputs)
    gap = (unit.rounded(inputs) - before).abs().max()
    assert 0 < gap < 1e-5
    assert torch.equal(unit.call(inputs), before)


def test_a_mask_that_allows_is_turned_for_a_unit(unit):
    """Units forbid where a mask is True; a challenge may mean the opposite."""
    x = Dice(2).normal((2, 3, WIDTH))
    mask = torch.ones(2, 3, 3, dtype=torch.bool).triu(1)
    turned = UnitReference("MultiHeadSelfAttention", ["mask"])
    turned.equip({"embed_dim": WIDTH, "num_heads": 2}, Dice(1))
    right = unit.call({"x": x, "mask": mask})
    assert torch.equal(turned.call({"x": x, "mask": ~mask}), right)
    assert not torch.equal(turned.call({"x": x, "mask": mask}), right)
    assert torch.equal(turned.call({"x": x, "mask": None}), unit.call({"x": x, "mask": None}))
    cotangent = torch.ones_like(x)
    found = turned.gradients({"x": x, "mask": ~mask}, cotangent).inputs["x"]
    assert torch.equal(found, unit.gradients({"x": x, "mask": mask}, cotangent).inputs["x"])


def test_what_dropout_does_to_a_unit_is_drawn_apart():
    """A seed gives the same draws again, nobody else's random numbers are used up, and eval mode
    is back."""
    reference = UnitReference("CrossAttention")
    reference.equip({"embed_dim": WIDTH, "num_heads": 2, "dropout": 0.5}, Dice(1))
    x = Dice(2).normal((2, 3, WIDTH))
    inputs = {"x": x, "context": x}
    calm, state = reference.call(inputs), torch.get_rng_state()
    one, two = reference.in_training(inputs, 2, seed=7)
    assert not torch.equal(one, two)
    assert torch.equal(reference.in_training(inputs, 1, seed=7)[0], one)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(reference.call(inputs), calm)


def test_a_solution_that_returns_more_than_a_tensor_is_told():
    """As one whose cache is said to be kept inside, and is returned."""
    text = SOLUTION.replace("return ", "return 1, ")
    reference = FileReference(Code(file="solution.py", text=text, name="M"), LocalHost())
    reference.equip({"width": WIDTH}, Dice(1))
    with pytest.raises(BadReference, match=r"solution.py returned a tuple .*not one tensor"):
        reference.call({"x": Dice(2).normal((2, 3, WIDTH))})


def test_a_unit_that_is_none_is_told():
    """With the names of those that are."""
    with pytest.raises(BadReference, match="no reference is called 'Attention'; there are ALiBi"):
        UnitReference("Attention")

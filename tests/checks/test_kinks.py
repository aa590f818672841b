"""Slopes of a module with kinks: a step may go over the kink of a ReLU, which is no mistake."""

import pytest
from modules import hosted

from attnlab.grading.runner import run_checks
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext
from attnlab.records import Contract, Input

CONTRACT = Contract(
    sizes={"B": 3, "S": 9, "D": 32},
    init={"width": "D"},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    output=("B", "S", "D"),
)
WIDE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(width, 64 * width)
        self.narrow = nn.Linear(64 * width, width)

    def forward(self, x):
        return self.narrow(self.wide(x).relu())
"""


@pytest.mark.parametrize(("old", "outcome"), [("", "passed"), (".relu()", "failed")])
@pytest.mark.parametrize("seed", range(5))
def test_a_kink_is_no_wrong_gradient(old, outcome, seed):
    """With 55296 kinks most steps of 1e-5 go over one; values without a gradient are still seen."""
    text = WIDE.replace(".relu()", ".detach().relu()") if old else WIDE
    host = hosted(text, CONTRACT)
    context = GradingContext(
        contract=CONTRACT, name="Net", host=host, renew=lambda: host, dice=Dice(seed),
        reference=None, only=frozenset({"gradcheck"}),
    )  # fmt: skip
    assert [c.outcome for c in run_checks(context) if c.id == "gradcheck"] == [outcome]

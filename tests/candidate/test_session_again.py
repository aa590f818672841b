"""What a session remembers from call to call must never answer for something else."""

import torch

from attnlab.candidate.process_state import SEED, Surroundings, set_seed
from attnlab.candidate.session import Session

SOURCE = """
import torch
from torch import nn

class First(nn.Module):
    def forward(self, x, y):
        return x - y

class Swapped(nn.Module):
    def forward(self, y, x):
        return x - y

class Wakes(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout(0.5)

    def forward(self, x):
        out = self.inner(x)
        self.inner.train()
        return out

class Mode(nn.Module):
    def forward(self, x):
        return x * (2 if self.training else 1)
"""
X, Y = torch.tensor([3.0, 5.0]), torch.tensor([1.0, 1.0])


def session(name: str) -> Session:
    made = Session()
    made.ask("load", file="again.py", text=SOURCE, path="", own=None)
    build(made, name)
    return made


def build(made: Session, name: str) -> None:
    assert made.ask("build", name=name, init={}, seed=0) == {}


def test_places_are_those_of_the_module_that_is_called():
    """Places are kept for one function; the next module may take its inputs in another order."""
    made, given = session("First"), [("x", X), ("y", Y)]
    for name in ("First", "Swapped", "First"):
        build(made, name)
        assert torch.equal(made.ask("call", inputs=given)["output"], X - Y)


def test_a_part_that_a_call_switched_to_train_mode_is_switched_back():
    """Only the parts tell the mode: the module itself may still say eval."""
    made, x = session("Wakes"), torch.ones(64)
    told = made.ask("calls", inputs=[[("x", x)], [("x", x)]])["answers"]
    assert all(torch.equal(answer["output"], x) for answer in told)


def test_several_calls_are_made_in_the_mode_that_is_asked_for():
    """`calls` serves train mode as well, and eval mode comes back after it."""
    made, asked = session("Mode"), [[("x", X)]]
    outs = [
        made.ask("calls", inputs=asked, train=train)["answers"][0]["output"]
        for train in (False, True, False)
    ]
    assert [out[0].item() for out in outs] == [3.0, 6.0, 3.0]


def test_seeding_gives_the_numbers_of_torch_itself():
    """A module's own initial weights must be those that torch.manual_seed gives."""
    torch.manual_seed(SEED)
    expected = torch.rand(5)
    set_seed(SEED)
    assert torch.equal(torch.rand(5), expected)
    assert torch.initial_seed() == SEED


def test_surroundings_may_be_those_of_an_earlier_time():
    """The zygote takes them once, for all the children that it forks."""
    before = Surroundings()
    assert Session(before).surroundings is before
    assert Session().surroundings is not before

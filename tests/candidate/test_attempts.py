"""Calls with inputs that may not be what a module takes."""

import torch

from attnlab.candidate.session import Session

NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x, maps):
        return self.layer(x) + maps.flatten(2)[:, 0, :3]
"""


def attempt(x, maps):
    session = Session()
    session.ask("load", file="net.py", text=NET, path="", own=None)
    session.ask("build", name="Net", init={}, seed=0)
    return session.ask("attempt", inputs=[("x", x), ("maps", maps)], arguments={})


def test_an_attempt_tells_how_far_it_came():
    """The layer took x; maps had nothing to flatten; and the call ran to its end."""
    told = attempt(torch.zeros(2, 4), torch.zeros(2, 5, 6))
    assert (told["taken"], told["idle"], told["error"]) == (["x"], ["maps"], "")


def test_an_attempt_that_fails_says_why():
    """The operations before the failure count; the layer took nothing."""
    told = attempt(torch.zeros(2, 5), torch.zeros(2, 5, 6))
    assert told["taken"] == []
    assert "cannot be multiplied" in told["error"]

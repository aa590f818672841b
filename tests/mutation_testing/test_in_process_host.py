"""A candidate in this process keeps its settings to itself."""

from __future__ import annotations

import torch

from attnlab.mutation_testing.in_process_host import InProcessHost

RUDE = """
import torch
from torch import nn

class Rude(nn.Module):
    def forward(self, x):
        before = torch.tensor([float(torch.is_grad_enabled()), torch.rand(()).item()])
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(3)
        return before
"""


def rude():
    host = InProcessHost()
    host.ask("load", file="rude.py", text=RUDE, path="", own=None)
    host.ask("build", name="Rude", init={}, seed=0)
    return host


def test_what_a_candidate_sets_does_not_reach_us():
    """The judge's own gradients, dtype and draws are as before."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    host = rude()
    host.ask("call", inputs=[("x", torch.ones(1))])
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() is torch.float32
    assert torch.equal(torch.rand(3), expected)


def test_it_finds_its_own_settings_again():
    """As in a process of its own: the seed it set is still set at the next call."""
    host = rude()
    given = [("x", torch.ones(1))]
    first = host.ask("call", inputs=given)["output"]
    second = host.ask("call", inputs=given)["output"]
    third = host.ask("call", inputs=given)["output"]
    assert second[1] == third[1] != first[1]
    assert (first[0], second[0]) == (0.0, 0.0)  # a call is made without gradients

"""What a session tells of calls that share tensors, and of instances beside the first."""

import pytest
import torch
from modules import called, made, module


def test_calls_fill_the_same_tensors():
    """What is known of a tensor by its identity is true of one call; its values are each call's."""
    text = module("self.seen = getattr(self, 'seen', []) + [id(x)]\nreturn x + len(set(self.seen))")
    session = made(text)
    given = [[("x", torch.full((2,), float(n)))] for n in range(3)] + [[("x", torch.zeros(3))]]
    answers = session.ask("calls", inputs=given)["answers"]
    assert [a["output"].tolist() for a in answers] == [[1, 1], [2, 2], [3, 3], [2, 2, 2]]
    assert not any("wrote" in a for a in answers)
    assert [g[0][1].tolist() for g in given[:3]] == [[0, 0], [1, 1], [2, 2]]


ONE = "self.proj = Net.__dict__.get('one') or nn.Linear(2, 2)"
TABLE = "self.register_buffer('pe', torch.ones(1))"


@pytest.mark.parametrize(
    ("body", "outputs", "spoiled"),
    [
        ("return x + self.pe", [1.0, 2.0], True),
        ("return x + 1", [1.0, 1.0], True),
        ("self.pe = torch.ones(1)\nreturn x + self.pe", [1.0, 1.0], False),
    ],
)
def test_spoiled_gives_a_buffer_other_values(body, outputs, spoiled):
    """In an instance that was never called; that the call made it anew is told."""
    session = made(module(body, TABLE))
    recipe = {"name": "Net", "init": {"width": 2}, "seed": 0}
    told = session.ask("with_changed_buffer", **recipe, buffer="pe", inputs=[("x", torch.zeros(1))])
    assert ([a["output"].item() for a in told["answers"]], told["spoiled"]) == (outputs, spoiled)
    assert called(session, ("x", torch.zeros(1)))["output"].item() == outputs[0]


@pytest.mark.parametrize(
    ("body", "init", "same"),
    [
        ("return self.proj(x)", "self.proj = nn.Linear(2, 2)", True),
        ("return self.proj(x)", f"{ONE}\nNet.one = self.proj", False),
        ("return x * Net.scale", "Net.scale = width", False),
    ],
)  # fmt: skip
def test_beside_builds_another_instance(body, init, same):
    """And gives its parameters other values; the first one is called."""
    session = made(module(body, init))
    before = called(session, ("x", torch.ones(2)))["output"]
    recipe = {"name": "Net", "init": {"width": 3}, "seed": 0}
    x = [("x", torch.ones(2))]
    after = session.ask("after_sibling", **recipe, other=x, inputs=x)["output"]
    assert torch.equal(before, after) is same

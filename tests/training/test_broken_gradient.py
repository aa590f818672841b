"""The step whose numbers break is run again, and the line where they do is told."""

import textwrap

import pytest

SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr={rate})
for step in range(30):
    x = torch.randn(5, 4)
    mask = torch.ones(5, 1)
    if step == {step}:
        mask[2] = 0
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    {finish}
"""
LENGTH = "(net(x) * mask).square().sum(-1).sqrt().mean()"
LOG = "-(net(x).softmax(-1) * mask).log().mean()"
MASKED = 'net(x).masked_fill(mask == 0, float("-inf")).softmax(-1).square().mean()'
STEP = "optimizer.step()"


@pytest.fixture
def triage(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def look(loss, step=6, finish=STEP, rate=0.1):
        text = textwrap.dedent(SCRIPT).format(loss=loss, step=step, finish=finish, rate=rate)
        (tmp_path / "train.py").write_text(text)
        found = shell("triage", "train.py", "--json").json
        return {s["rule"]: s for s in reversed(found["suspicions"])}, found

    return look


@pytest.mark.parametrize(
    ("loss", "rule", "says"),
    [
        (LENGTH, "gradient-origin", "step 7 the gradient is finite up to Sqrt"),
        (LOG, "gradient-origin", "finite up to Log"),
        (MASKED, "nan-origin", "softmax"),
    ],
)
def test_the_operation_that_broke_stands_first(triage, loss, rule, says):
    """In the forward pass or in the backward one, at its line, many steps after the start."""
    found, whole = triage(loss)
    assert whole["suspicions"][0]["rule"] == rule
    assert found[rule]["line"] == 14
    assert says in found[rule]["message"]
    assert len({"nan-origin", "gradient-origin"} & set(found)) == 1
    assert any("weights were no numbers" in text for text in whole["not_looked_at"])


def test_a_norm_of_broken_gradients_is_not_where_they_broke(triage):
    """Clipping sees the NaN after the backward pass."""
    clip = "nn.utils.clip_grad_norm_(net.parameters(), 1.0); optimizer.step()"
    found, _ = triage(LENGTH, finish=clip)
    assert "nan-origin" not in found
    assert found["gradient-origin"]["line"] == 14


def test_a_rate_that_blows_the_weights_up_is_named(triage):
    """The first step was enough."""
    assert "learning-rate" in triage("net(x).pow(4).mean()", rate=1e12)[0]


def test_a_step_that_is_left_out_is_no_fault(triage):
    """As by a scaler of gradients: the losses after it are numbers."""
    skip = "if all(p.grad.isfinite().all() for p in net.parameters()): optimizer.step()"
    found, _ = triage(LENGTH, finish=skip)
    assert "gradient-origin" not in found
    assert "loss-not-finite" not in found

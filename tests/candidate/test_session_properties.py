"""The properties of a module through a session: on the example's inputs, and on a demo's own."""

import os
import sys

import pytest
import torch
from modules import HEAD, called, made, module, randn

from attnlab.candidate.session import Session
from attnlab.records import LiveReport, UserEnvironment, from_json, plain

SAID = {"promised": [], "unpromised": []}
DEMO = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 4)
    def forward(self, x, *, gain):
        return self.w(x - x.mean((0, 1))) * gain
for step in range(2):
    Net()(torch.randn(3, 5, 4), gain=torch.ones(1))
"""


LOSS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.h = nn.Embedding(9, 4), nn.Linear(4, 9)
    def forward(self, ids):
        x = self.e(ids)
        return self.h(x + x.mean(1, keepdim=True))
data = torch.randint(0, 9, (3, 8), generator=torch.Generator().manual_seed(0))
logits = Net()(data[:, :-1])
{loss}
raise ValueError("what follows the loss is not run")
"""


def failed(answer):
    assert "raised" not in answer, answer
    found = from_json(LiveReport, answer["report"])
    return {check.id for check in found.checks if check.outcome == "failed"}


def test_the_properties_of_the_target():
    """They are looked at on the inputs that are sent."""
    session = made(
        module("return self.w(x - x.mean(0)) + x.mean(1, True)", "self.w = nn.Linear(4, 4)")
    )
    answer = called(session, ("x", randn(3, 5, 4)), verb="look_at_properties", **SAID)
    assert failed(answer) == {"batch-independence", "edge-shapes"}


def test_a_mask_that_was_given_as_none_is_tried():
    """An example without a mask passes None by position; the mask is given there all the same."""
    ignores = "return (x @ x.mT).softmax(-1) @ self.w(x)"
    session = made(module(ignores, "self.w = nn.Linear(4, 4)", head="self, x, attn_mask=None"))
    given = ("x", randn(3, 5, 4)), ("attn_mask", None)
    assert failed(called(session, *given, verb="look_at_properties", **SAID)) == {"mask-effect"}


def demo(text, tmp_path):
    own = plain(UserEnvironment(cwd=str(tmp_path)))
    before, argv, main = os.getcwd(), sys.argv, sys.modules["__main__"]  # noqa: PTH109
    environ = dict(os.environ)
    try:
        code = {"file": "demo.py", "text": HEAD + text, "path": "", "own": own}
        return Session().ask("look_at_demo", **code, **SAID)
    finally:
        os.chdir(before)
        os.environ.update(environ)
        sys.argv, sys.modules["__main__"] = argv, main


def test_the_properties_of_a_demos_module(tmp_path):
    """Keyword arguments come along, and a second call of a module is not run."""
    assert failed(demo(DEMO, tmp_path)) == {"batch-independence", "edge-shapes"}


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten())",
        "nn.CrossEntropyLoss()(logits.flatten(0, 1), data[:, 1:].flatten())",
        "nn.functional.cross_entropy(logits[:, :-1].mT, data[:, 1:-1])",
    ],
)
def test_the_targets_of_a_demos_loss_promise_causality(loss, tmp_path):
    """A model without any mask that is to predict the next token reads it."""
    assert "causality" in failed(demo(LOSS.format(loss=loss), tmp_path))


def test_a_function_has_properties_too():
    """It is looked at as a module without parameters."""
    session = Session()
    session.target = lambda x: x.softmax(0) + x.sum(1, True)
    answer = called(session, ("x", torch.randn(3, 5, 4)), verb="look_at_properties", **SAID)
    assert "batch-independence" in failed(answer)

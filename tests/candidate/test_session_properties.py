"""The properties of a module through a session: on the example's inputs, and on a demo's own."""

import os
import sys

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
    raise ValueError("what follows the first call is not run")
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


def test_the_properties_of_a_demos_module(tmp_path):
    """Keyword arguments come along, and what the script does afterwards is not run."""
    own = plain(UserEnvironment(cwd=str(tmp_path)))
    before, argv, main = os.getcwd(), sys.argv, sys.modules["__main__"]  # noqa: PTH109
    environ = dict(os.environ)
    try:
        code = {"file": "demo.py", "text": HEAD + DEMO, "path": "", "own": own}
        answer = Session().ask("look_at_demo", **code, **SAID)
    finally:
        os.chdir(before)
        os.environ.update(environ)
        sys.argv, sys.modules["__main__"] = argv, main
    assert failed(answer) == {"batch-independence", "edge-shapes"}


def test_a_function_has_properties_too():
    """It is looked at as a module without parameters."""
    session = Session()
    session.target = lambda x: x.softmax(0) + x.sum(1, True)
    answer = called(session, ("x", torch.randn(3, 5, 4)), verb="look_at_properties", **SAID)
    assert "batch-independence" in failed(answer)

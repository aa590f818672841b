"""Scripts and stages through a session: the verbs that run a user's whole program."""

import os
import sys

from attnlab.candidate.session import Session
from attnlab.records import LiveReport, UserEnvironment, from_json, plain
from attnlab.tracer.raw_trace import RawTrace
from attnlab.training.log import TrainingLog

SCRIPT = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.arange(5) % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_script_is_watched_and_its_model_looked_at(tmp_path):
    """The log, the trace of a step, and the properties on the first batch."""
    own = plain(UserEnvironment(cwd=str(tmp_path)))
    before, argv, main = os.getcwd(), sys.argv, sys.modules["__main__"]  # noqa: PTH109
    environ = dict(os.environ)
    code = {"file": "train.py", "text": SCRIPT, "path": "", "own": own}
    try:
        said = {"steps": 4, "promised": [], "unpromised": []}
        answer = Session().ask("watch_training", **code, **said)
    finally:
        os.chdir(before)
        sys.argv, sys.modules["__main__"] = argv, main
        os.environ.clear()
        os.environ.update(environ)
    log = from_json(TrainingLog, answer["log"])
    assert (len(log.steps), log.crash) == (4, "")
    assert "cross_entropy" in [op.op for op in from_json(RawTrace, answer["trace"]).ops]
    checks = from_json(LiveReport, answer["live"]).checks
    assert "passed" in {check.outcome for check in checks}

"""The line at which a finding is told."""

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.records import Finding, Job, Limits
from attnlab.records.job import Code
from attnlab.target.command_line import TraceCommand
from attnlab.target.finding_lines import _where_replaced, _where_switched
from attnlab.target.triage_target import look_at, triage_job

TEXT = """
def replace_head(model, n):
    model.head = nn.Linear(8, n)

{main}
"""
ONCE = "optimizer = Adam(model.parameters())\nreplace_head(model, 5)"


@pytest.mark.parametrize(
    ("main", "line"), [(ONCE, 6), (f"{ONCE}\nreplace_head(model, 3)", 3), ("pass", 3)]
)
def test_a_late_layer_is_told_where_it_is_put_in(main, line):
    """The call comes too late, and not the function that it calls."""
    code = Code(file="net.py", text=TEXT.format(main=main), name=None)
    job = Job(candidate=code, contract=None, stages=("trace",), limits=Limits())
    finding = Finding(
        rule="not-in-optimizer", file="net.py", line=5, op="", severity="warning",
        message="head.weight, head.bias: trainable, and in no optimizer",
    )  # fmt: skip
    assert _where_replaced(finding, job).line == line


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("opt = Adam(model.parameters())\n    model.head = nn.Linear(8, 5)", 4),
        ("model.head = nn.Linear(8, 5)\n    opt = Adam(model.encoder.parameters())", 4),
    ],
)
def test_a_late_layer_is_told_beside_its_optimizer(body, line):
    """Both stand in one function, whoever calls it; a layer that was there before is not late."""
    made = 3 + body.startswith("model")
    text = f"\ndef main(model):\n    {body}\n\nmain(Net())\n"
    code = Code(file="net.py", text=text, name=None)
    job = Job(candidate=code, contract=None, stages=("trace",), limits=Limits())
    finding = Finding(
        rule="not-in-optimizer", file="net.py", line=made, op="", severity="warning",
        message="head.weight, head.bias: trainable, and in no optimizer",
    )  # fmt: skip
    told = _where_replaced(finding, job)
    assert told.line == line
    assert ("optimizer of line 3" in told.message) == (made == 3)


LOOP = """
def evaluate(model):
    {mode}

model.train()
for batch in batches:
    loss = model(batch)
    {after}
"""


@pytest.mark.parametrize(
    ("mode", "after", "line"), [("model.eval()", "evaluate(model)", 3), ("pass", "model.eval()", 5)]
)
def test_learning_in_eval_mode_is_told_where_the_mode_is_left_on(mode, after, line):
    """An evaluation is to switch back what it switched; within one loop, train() comes into it."""
    code = Code(file="net.py", text=LOOP.format(mode=mode, after=after), name=None)
    job = Job(candidate=code, contract=None, stages=("trace",), limits=Limits())
    finding = Finding(
        rule="eval-while-training", file="net.py", line=7, op="", severity="warning",
        message="Net learned 12 times in eval mode",
    )  # fmt: skip
    assert _where_switched(finding, job).line == line


FLAT = """
import torch
from torch import nn

def weighed(nll, target):
    return (nll * target.ne(0)).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(9, 8), nn.Linear(8, 9)

    def forward(self, ids):
        scores = self.out(self.embed(ids)).transpose(0, 1)
        {merged}

if __name__ == "__main__":
    Net()(torch.ones(3, 5, dtype=torch.long))
"""


@pytest.mark.parametrize(
    ("merged", "line"),
    [
        ("return weighed(scores[..., 0].reshape(-1), ids.reshape(-1))", 15),
        ("flat = ids.flatten()\n        return weighed(scores[..., 0].reshape(-1), flat)", 6),
        ("return weighed(scores[..., 0].reshape(-1), ids.t().reshape(-1))", 0),
    ],
)
def test_axes_in_another_order_are_told_where_both_are_merged(merged, line, tmp_path):
    """The loss that they meet in is right, where one line before flattened both."""
    path = tmp_path / "net.py"
    path.write_text(FLAT.format(merged=merged))
    typed = TraceCommand(target=str(path))
    job = triage_job(typed, Limits())
    trace = look_at(typed, job, lambda job: run_job(job, lambda *_: LocalHost()), print).trace
    found = [f.line for f in trace.findings if f.rule == "axes-order"]
    assert found == [line] * bool(line)

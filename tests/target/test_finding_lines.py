"""The line at which a finding is told."""

import pytest

from attnlab.records import Finding, Job, Limits
from attnlab.records.job import Code
from attnlab.target.finding_lines import _where_replaced

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

"""The relations of sizes that a run asks for, by a run with symbols."""

import subprocess
import sys

import torch
from health_modules import capture_of
from modules import randn
from torch import nn

from attnlab.tracer.views.symbolic import ANY_SIZES

X = randn(3, 4, 8)


def guards(f, x=X, axes="B S D", **sizes):
    trace = capture_of(f, x, axes=axes, sizes={"B": 3, "S": 4, "D": 8, **sizes}, symbolic=True)
    return [(g.relation, g.op) for g in trace.guards], trace.notes


class Attention(nn.Module):
    def __init__(self, right):
        super().__init__()
        self.q, self.right = nn.Linear(8, 8), right

    def forward(self, x):
        q = self.q(x).unflatten(-1, (2, -1)).transpose(1, 2)
        scores = q @ (q.mT if self.right else q)
        return scores.softmax(-1) @ q


def test_an_equality_that_the_run_needs_is_named():
    """S == hd, at the product that needs it, with its line."""
    found, notes = guards(Attention(right=False), hd=4, H=2)
    assert (found[0], notes) == (("S == hd (= 4)", "matmul"), ())
    trace = capture_of(
        Attention(right=False), X, axes="B S D", sizes={"S": 4, "hd": 4}, symbolic=True
    )
    assert trace.guards[0].source == "scores = q @ (q.mT if self.right else q)"


def test_a_right_module_asks_for_nothing():
    """Widths of weights and axes of size 1 are no relations worth a word."""
    assert guards(Attention(right=True), hd=4, H=2) == ([], (ANY_SIZES,))


def test_two_inputs_that_meet():
    """Axes of one name are equal by definition, axes of two names are not."""
    assert guards(lambda x: x + x.transpose(0, 1), torch.ones(3, 3, 8))[0] == [("S == B", "add")]
    assert guards(lambda x: x + x, torch.ones(3, 3, 8))[0] == []


def test_a_line_of_python_that_asks():
    """A literal size in a condition."""
    found, _ = guards(lambda x: x * 2 if x.shape[1] == 4 else x)
    assert found == [("S == 4", "")]


def limited(x):
    if x.shape[1] > 8:
        x = x[:, :8]
    return x * 2


def test_a_condition_that_is_no_equality():
    """`if S > 8` is a relation of sizes too, as it came out here, at its own line."""
    (guard,) = capture_of(limited, X, axes="B S D", sizes={"S": 4}, symbolic=True).guards
    assert (guard.relation, guard.source) == ("S <= 8", "if x.shape[1] > 8:")
    assert guards(lambda x: x if x.shape[1] != 5 else x * 2)[0] == [("S != 5", "")]


def test_what_an_operation_asks_for_is_no_condition():
    """Slices have bounds, pieces have lengths: PyTorch asks for those itself."""
    assert guards(lambda x: torch.zeros(6, 8)[: x.shape[1]] + x[:, -3:].sum(1, True))[0] == []


def test_what_depends_on_values_is_said():
    """No guard can be had beyond it."""
    found, (note,) = guards(lambda x: x if x.sum() > 0 else -x)
    assert found == []
    assert note.startswith("symbolic sizes could not be followed beyond line ")
    assert note.endswith("its course depends on values, which a symbolic run does not have")


def test_the_compiler_is_imported_on_demand_only():
    """It takes seconds: no trace pays for it that did not ask."""
    code = (
        "import sys, torch\n"
        "from attnlab.tracer.call_setup import TracedCall\n"
        "from attnlab.tracer.capture import capture\n"
        "call = lambda given: given[0][1] @ torch.ones(3)\n"
        "capture(TracedCall(call=call, given=[('x', torch.ones(2))]))\n"
        "sys.exit('torch._dynamo' in sys.modules or 'sympy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

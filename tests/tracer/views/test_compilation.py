"""What torch.compile makes of a call (C10), beside what `torch._dynamo.explain` says."""

import logging
import os

import pytest
import torch
from compiled_modules import MODULES, Body, assert_agrees_with_explain, compilation
from torch import nn


# The others of MODULES are compared in tests/accuracy/peers: each is compiled twice.
@pytest.mark.parametrize("name", ["softmax", "a value decides", "two breaks"])
def test_it_agrees_with_explain(name):
    """Graphs and lines of breaks are those of PyTorch's own report."""
    assert_agrees_with_explain(name)


def test_a_size_that_is_a_constant_compiles_anew_each_time():
    """A loop over positions has as many steps as there are: no graph serves two lengths. A batch of
    another size is compiled once more, and then for all."""
    changes = {c.axis: c for c in compilation(MODULES["a loop"]()).recompilations}
    assert changes["S"].sizes == (6, 7, 8, 9)
    assert all(changes["S"].compiled)
    assert "expected 5, actual 6" in changes["S"].reason
    usual = {c.axis: c for c in compilation(MODULES["softmax"]()).recompilations}
    assert usual["B"].compiled == (True, False, False, False)


def test_a_branch_on_a_value_is_told_in_words():
    """And what keeps it in one graph; PyTorch names an internal function."""
    reasons = {place.reason for place in compilation(MODULES["a tensor decides"]()).breaks}
    assert any(text.startswith("a branch on a tensor's value; torch.where") for text in reasons)
    assert not any("generic_jump" in text for text in reasons)


class Choosing(nn.Module):
    """Experts, each for the rows that choose it."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 2)
        self.experts = nn.ModuleList(Body(lambda _, y: y.relu()) for _ in range(2))

    def forward(self, x):
        flat = x.flatten(0, 1)
        best = self.gate(flat).argmax(-1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows = (best == i).nonzero().flatten()
            if rows.numel():
                out[rows] = expert(flat[rows])
        return out.view_as(x)


def test_a_function_that_is_left_to_python_is_told():
    """Its calls have graphs, and PyTorch tells of no break."""
    seen = compilation(Choosing())
    (place,) = seen.breaks
    assert place.source == "if rows.numel():"
    assert place.reason.startswith("the function is left to Python: ")


def test_nothing_stays_behind():
    """The module is not compiled afterwards, and the logs of PyTorch are as they were."""
    module = MODULES["softmax"]()
    level, handlers = logging.getLogger("torch").level, list(logging.getLogger("torch").handlers)
    compilation(module)
    assert module._compiled_call_impl is None
    assert (logging.getLogger("torch").level, logging.getLogger("torch").handlers) == (
        level, handlers)  # fmt: skip
    assert "recompiles" not in torch._logging._internal.log_state.artifact_names


def test_a_function_is_compiled_too():
    """It has no module to compile: the call itself is."""
    seen = compilation(lambda x: x.softmax(-1) * 2)
    assert (seen.graphs, seen.breaks) == (1, ())


def test_a_compiler_that_fails_is_told(monkeypatch):
    """One line in place of a result; the trace is there all the same."""

    def fail(*_, **__):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(
        nn.Module, "compile", lambda self, **_: setattr(self, "_compiled_call_impl", fail)
    )
    seen = compilation(MODULES["softmax"]())
    assert seen.problem == "torch.compile raised RuntimeError: no compiler here"


def test_it_works_where_compilation_is_switched_off(monkeypatch):
    """As in the processes in which challenges run; it is off again afterwards."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    assert compilation(MODULES["softmax"]()).graphs == 1
    assert os.environ["TORCHDYNAMO_DISABLE"] == "1"

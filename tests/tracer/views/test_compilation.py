"""What torch.compile makes of a call (C10), beside what `torch._dynamo.explain` says."""

import logging
import os

import pytest
import torch
from health_modules import capture_of
from modules import randn
from torch import nn
from torch.nn import functional as F

X = randn(3, 5, 8)


def compilation(f, x=X, axes="B S D"):
    sizes = dict(zip(axes.split(), x.shape, strict=True))
    return capture_of(f, x, axes=axes, sizes=sizes, compile=True).compilation


class Body(nn.Module):
    """A projection, and then what a test asks for."""

    def __init__(self, then):
        super().__init__()
        self.q, self.then, self.calls = nn.Linear(8, 8), then, 0

    def forward(self, x):
        return self.then(self, self.q(x))


def by_value(self, y):
    if y.sum().item() > 0:
        y = y * 2
    return y + 1


def by_tensor(self, y):
    if y.max() > 0:
        y = y * 2
    return y + 1


def explicit(self, y):
    torch._dynamo.graph_break()
    return y + 1


def twice(self, y):
    torch._dynamo.graph_break()
    y = y * 2
    torch._dynamo.graph_break()
    return y + 1


def in_numpy(self, y):
    return y + float(y.detach().numpy().mean())


def by_list(self, y):
    y = y + len(y.tolist())
    return y * 2


BODIES = {
    "nothing more": lambda self, y: y,
    "softmax": lambda self, y: (y @ y.mT).softmax(-1) @ y,
    "a loop": lambda self, y: torch.stack([y[:, i] for i in range(y.shape[1])], 1),
    "the fused kernel": lambda self, y: F.scaled_dot_product_attention(y, y, y),
    "a size decides": lambda self, y: y * 2 if y.shape[1] > 3 else y,
    "a where": lambda self, y: torch.where(y > 0, y, 0.0),
    "a nonzero": lambda self, y: y[y > 0].sum() + y,
    "a value decides": by_value,
    "a tensor decides": by_tensor,
    "a break of one's own": explicit,
    "two breaks": twice,
    "numpy": in_numpy,
    "a list": by_list,
}
MODULES = {
    **{name: lambda then=then: Body(then) for name, then in BODIES.items()},
    "an encoder layer": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "layers in sequence": lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)),
}


@pytest.mark.parametrize("name", MODULES)
def test_it_agrees_with_explain(name):
    """Graphs and lines of breaks are those of PyTorch's own report; of each line one is told."""
    torch.manual_seed(0)
    module = MODULES[name]().eval()
    seen = compilation(module)
    torch._dynamo.reset()
    torch.manual_seed(0)
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    with torch.no_grad():
        told = torch._dynamo.explain(module)(X)
    torch._dynamo.reset()
    lines = {reason.user_stack[-1].lineno for reason in told.break_reasons}
    assert seen is not None
    assert (seen.problem, seen.graphs) == ("", told.graph_count)
    assert {place.line for place in seen.breaks} == lines
    assert all(place.reason for place in seen.breaks)


def test_a_size_that_is_a_constant_compiles_anew_each_time():
    """A loop over positions has as many steps as there are: no graph serves two lengths. A batch of
    another size is compiled once more, and then for all."""
    changes = {c.axis: c for c in compilation(MODULES["a loop"]()).recompilations}
    assert changes["S"].sizes == (6, 7)
    assert changes["S"].compiled == (True, True)
    assert "expected 5, actual 6" in changes["S"].reason
    usual = {c.axis: c for c in compilation(MODULES["softmax"]()).recompilations}
    assert usual["B"].compiled == (True, False)


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

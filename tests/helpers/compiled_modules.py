"""Modules that torch.compile makes one graph of, or several, and what is told of them."""

import logging

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


def assert_agrees_with_explain(name):
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

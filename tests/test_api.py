"""Traces from Python: one call, or a block of code, in the user's own process."""

import gc
import subprocess
import sys
import weakref

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import Refused
from attnlab.records.trace import TraceOptions


class Net(nn.Module):
    def __init__(self, num_heads=3):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(12, 36)

    def forward(self, x, mask=None, *, scale=0.5, extra=()):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * scale
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -1e9)
        return {"y": scores.softmax(-1) @ v, "extra": extra}


X = torch.randn(2, 5, 12)
MASK = torch.ones(2, 5, 5).triu(1).bool()


def test_one_call():
    """Names by the user's words and the module's own sizes; each row has its line."""
    trace = attnlab.trace(Net(), X, dims="x: B S D")
    assert trace.ops[-1].axes == ("B", "H", "S", "hd")
    assert trace.sizes == {"D": 12, "H": 3, "hd": 4, "B": 2, "S": 5}
    assert all(op.file.endswith("test_api.py") and op.line for op in trace.ops)
    assert (trace.findings, trace.crash, trace.notes) == ((), None, ())


def test_names_are_guessed_where_nobody_says_them():
    """By the names of parameters, also of keyword arguments and of what is inside a list."""
    trace = attnlab.trace(Net(), X, mask=MASK, scale=0.5, extra=[X])
    assert trace.ops[-1].axes == ("B", "H", "S", "hd")
    assert any(op.op == "masked_fill" and op.axes == ("B", "H", "S", "S'") for op in trace.ops)


def test_a_plain_function():
    """What is no module is called as it is."""
    trace = attnlab.trace(lambda q, k: q @ k.transpose(1, 2), X, X)
    assert trace.ops[-1].axes == ("B", "S", "S'")


def test_a_call_that_raises():
    """The crash is part of the trace; nothing is thrown at the user."""
    trace = attnlab.trace(lambda x: x @ x, X, dims="x: B S D")
    assert trace.crash.op == "matmul"
    assert trace.crash.operands[0].axes == ("B", "S", "D")
    assert "crashed at matmul" in repr(trace)


def test_the_callers_world_stays_as_it_was():
    """Inputs, random numbers, mode, gradients and hooks."""
    net, x = Net().train(), X.clone()
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    attnlab.trace(nn.Sequential(net, nn.Identity()), x)
    attnlab.trace(lambda t: t.add_(1), x, dims="t: B S D")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(x, X)
    assert net.training
    assert net.qkv.weight.grad is None
    from torch.nn.modules import module

    assert not module._global_forward_pre_hooks
    assert not module._global_forward_hooks


def test_nothing_is_kept_alive():
    """A trace holds numbers and names, no tensor of the model."""
    net = Net()
    gone = weakref.ref(net)
    trace = attnlab.trace(net, X)
    del net
    gc.collect()
    assert gone() is None
    assert trace.ops


def test_more_can_be_asked():
    """The questions of the command line, as a record."""
    trace = attnlab.trace(nn.Linear(12, 4), X, options=TraceOptions(backward=True))
    assert [p.name for p in trace.trace.backward.parameters] == ["weight", "bias"]


def test_a_sequence_first_module_is_recognised():
    """Where nobody says which axis is the batch, the one that makes sense of all sums is taken."""

    class First(nn.Module):
        def forward(self, x):
            return torch.einsum("sbd,tbd->bst", x, x).softmax(-1) @ x.transpose(0, 1)

    guessed = attnlab.trace(First(), X)
    assert guessed.findings == ()
    assert any("read as (S, B, ...)" in note for note in guessed.notes)
    said = attnlab.trace(First(), X, dims="x: B S D")
    assert "batch-contraction" in [f.rule for f in said.findings]


# ---------------------------------------------------------------- a block


def test_a_block_of_code():
    """The first module's inputs are named; the block's own result is untouched."""
    net = Net().eval()
    with attnlab.tracing(dims="x: B S D") as trace:
        out = net(X)
    assert torch.equal(out["y"], net(X)["y"])
    assert trace.ops[-1].axes == ("B", "H", "S", "hd")
    assert trace.sizes["S"] == 5


def test_a_block_without_a_module():
    """Names refer to variables of the caller."""
    some = X.clone()
    with attnlab.tracing("some: B S D") as trace:
        (some @ some.mT).softmax(0)
    assert [(f.rule, f.op) for f in trace.findings] == [("softmax-axis", "softmax")]


def test_a_batch_that_is_made_inside_the_block():
    """What is drawn just before the first module is an input of it."""
    with attnlab.tracing() as trace:
        x = torch.randn(2, 5, 12).clone()
        Net()(x)
    assert trace.ops[-1].axes == ("B", "H", "S", "hd")


def test_gradients_of_a_block_that_are_not_finite():
    """A backward pass that leaves NaN in a gradient is never passed over."""
    with attnlab.tracing() as trace:
        some = torch.ones(3, 4, requires_grad=True)
        (some - some).norm().sqrt().backward()
    (found,) = trace.findings
    assert (found.rule, found.severity, found.op) == ("gradient-origin", "error", "norm")
    assert "the gradient of some is not finite: norm on line" in found.message


def test_a_block_that_raises():
    """The exception goes on, and the trace up to it is there."""
    with pytest.raises(RuntimeError), attnlab.tracing("X: B S D") as trace:
        X @ X
    assert trace.crash.op == "matmul"


def test_a_block_keeps_gradients_and_nests():
    """Nothing is switched off inside; of a block in a block, the outer one sees the same code."""
    x = X.clone().requires_grad_()
    with attnlab.tracing() as outer, attnlab.tracing() as inner:
        x.sum().backward()
    assert x.grad is not None
    assert [op.op for op in inner.ops] == ["sum"]
    assert [op.op for op in outer.ops] == ["sum"]


def test_a_name_that_is_nobodys_is_told():
    """A typo must not go unnoticed."""
    with attnlab.tracing("y: B S D") as trace:
        Net()(X)
    assert any("no input is called y" in note for note in trace.notes)


def test_a_trace_is_complete_when_its_block_is():
    """Asked too early it says so."""
    with attnlab.tracing() as trace, pytest.raises(RuntimeError, match="block has ended"):
        trace.ops  # noqa: B018
    assert trace.ops == ()


@pytest.mark.parametrize("dims", ["x B S D", "x: B S"])
def test_names_that_do_not_fit_are_refused(dims):
    """One clear line, before anything runs."""
    with pytest.raises(Refused):
        attnlab.trace(Net(), X, dims=dims)


# ---------------------------------------------------------------- showing it


def test_it_shows_itself():
    """As text for a prompt, as HTML for a notebook."""
    trace = attnlab.trace(Net(), X, dims="x: B S D")
    assert "B H S hd" in trace.text(80)
    assert str(trace) == trace.text()
    assert '<section aria-label="trace of Net">' in trace._repr_html_()
    assert repr(trace) == "<trace of Net: 11 operations, 0 findings>"


def test_importing_attnlab_loads_no_torch():
    """The names are looked up when they are used; a wrong one is an AttributeError."""
    code = "import sys, attnlab; assert 'torch' not in sys.modules; "
    code += "attnlab.trace; 'torch' in sys.modules or exit(1)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'traces_'"):
        attnlab.traces_  # noqa: B018


# ---------------------------------------------------------------- likely causes


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT / 12**0.5
        scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        return scores.softmax(-1) @ v


def test_causes_are_ranked():
    """As the command ranks them, with text for a prompt."""
    seen = attnlab.triage(Leaky(), X)
    assert seen.suspicions[0].rule == "result-dropped"
    assert "result-dropped" in repr(seen)
    assert "settles it" in str(seen)
    assert seen.looked_at
    assert seen.not_looked_at


def test_a_block_of_training_is_watched():
    """And goes on undisturbed: nothing ends it, nothing is put aside."""
    model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attnlab.watch_training() as seen:
        for _ in range(6):
            loss = nn.functional.cross_entropy(model(X[:, 0]), torch.arange(2))
            loss.backward()
            optimizer.step()
    assert "gradients-left-over" in [s.rule for s in seen.suspicions]
    assert "6 optimizer steps" in " ".join(seen.looked_at)
    assert str(seen).startswith("triage  training")

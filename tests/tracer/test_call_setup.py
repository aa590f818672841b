"""Every surrounding in which somebody may run a model: it works, or the notes say what does not."""

import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from modules import names
from shots import CAUSAL, Plain, capture_of, x
from torch import nn

from attnlab.records import TraceOptions
from attnlab.tracer import call_setup

EVERYTHING = TraceOptions(aten=True, time=True, memory=True, attention=True, values=("weights",))
ROWS = names(capture_of(Plain(), x=x()))


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.enable_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
    ids=["no_grad", "enable_grad", "inference_mode", "autocast"],
)
def test_modes_of_torch(mode):
    """Rows and every extra are there, whatever mode the call itself switches on."""
    net = Plain()

    def call(t):
        with mode():
            return net(t)

    got = capture_of(call, root=net, options=EVERYTHING, x=x())
    assert (names(got), got.crash) == (ROWS, None)
    assert [h.title[:7] for h in got.values] == ["weights"]
    assert (len(got.attention[0].heads), got.ops[0].bytes > 0) == (2, True)


def test_a_function_transform_works_and_what_is_missing_is_said():
    """Inside a vmap there are rows, values and weights, but no statistics: a note says so."""
    net = Plain()
    got = capture_of(torch.vmap(net), root=net, options=EVERYTHING, x=x(3, 2, 4, 8))
    assert names(got) == ROWS
    assert got.attention[0].message
    assert "of shape (3, 2, 2, 4, 4)" in got.values[0].title
    (note,) = [n for n in got.notes if "vmap" in n]
    assert note.startswith(f"{len(ROWS)} rows have no values")


def test_functional_call_has_the_names_of_the_modules():
    """Weights that are swapped for one call change nothing of the rows."""
    net = Plain()
    got = capture_of(
        lambda t: torch.func.functional_call(net, dict(net.named_parameters()), (t,)), net, x=x()
    )
    assert (names(got), got.ops[0].module) == (ROWS, "proj")


def test_what_a_hook_does_is_seen():
    """A row of a forward hook stands at the hook's line and belongs to its module."""
    net = Plain()
    net.proj.register_forward_hook(lambda module, args, out: out * 2)
    got = capture_of(net, x=x())
    assert (names(got)[1], got.ops[1].module) == ("mul", "proj")
    assert "out * 2" in got.ops[1].source


def test_a_module_that_is_used_twice_has_one_name():
    """A shared module bears its first name at both places."""

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.two = nn.Linear(8, 8)

        def forward(self, x):
            return self.two(self.one(x))

    assert [op.module for op in capture_of(Shared(), x=x()).ops] == ["one", "one"]


def test_control_flow_that_depends_on_data():
    """A branch on a value is taken as without a trace; reading the value makes no row."""

    def f(x):
        return x * 2 if x.sum().item() > 1e9 or bool((x > 1e9).any()) else x - 1

    assert names(capture_of(f, x=x())) == ["sum", "gt", "any", "sub"]


def test_a_generator_is_run_to_its_end():
    """A forward with `yield` does nothing until somebody takes what it yields."""

    def f(x):
        for i in range(3):
            yield x * i

    assert names(capture_of(f, x=x())) == ["mul"] * 3


def test_a_generator_without_end_is_left_at_some_point(monkeypatch):
    """Decoding loops may yield forever."""
    monkeypatch.setattr(call_setup, "MAX_ITEMS", 5)

    def f(x):
        while True:
            yield x * 2

    assert len(capture_of(f, x=x()).ops) == 5


class Pair(NamedTuple):
    hidden: torch.Tensor
    weights: torch.Tensor


@dataclass
class Output:
    hidden: torch.Tensor


@pytest.mark.parametrize(
    "wrap",
    [lambda t: (t, None), lambda t: [[t], t], lambda t: {"a": t}, lambda t: Pair(t, t), Output],
    ids=["tuple", "nested list", "dict", "namedtuple", "dataclass"],
)
def test_whatever_is_returned(wrap):
    """What a module gives back is its own business."""
    assert names(capture_of(lambda x: wrap(x + 1), x=x())) == ["add"]


def test_inputs_that_are_left_out():
    """None goes to the module as None, and is no input tensor."""
    got = capture_of(Plain(), x=x(), mask=None)
    assert (got.input_names, names(got)) == (("x",), ROWS)
    assert "masked_fill" in names(capture_of(Plain(), x=x(), mask=CAUSAL))


# ---------------------------------------------------------------- what is switched off


def test_the_fast_path_of_torch_is_named_where_it_is_lost():
    """Evaluation of an encoder layer takes other kernels without a trace; training does not."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert capture_of(layer.train(), x=x()).notes == ()
    (note,) = capture_of(layer.eval(), x=x()).notes
    assert note.startswith("nn.MultiheadAttention and nn.TransformerEncoderLayer took the slow")


def test_a_fast_path_that_was_not_to_be_taken_is_not_named():
    """A module that the call does not use is nobody's concern."""
    net = Plain()
    net.unused = nn.MultiheadAttention(8, 2).eval()
    assert capture_of(net, x=x()).notes == ()


COMPILED = """
import sys
sys.path[:0] = {path}
import torch
from shots import Plain, capture_of, x
from attnlab.records import TraceOptions
plain = Plain()
rows = [(op.op, op.module) for op in capture_of(plain, x=x()).ops]
wrapped = torch.compile(plain, backend="eager")
wrapped(x())
got = capture_of(wrapped, options=TraceOptions(aten=True, attention=True), x=x())
assert [(op.op, op.module) for op in got.ops] == rows, got.ops
assert "original module" in got.notes[0], got.notes
assert len(got.attention[0].heads) == 2
plain.compile(backend="eager")
plain(x())
assert [(op.op, op.module) for op in capture_of(plain, x=x()).ops] == rows
"""


def test_a_compiled_module_is_traced_as_it_was_written():
    """Rows, lines and names are the original's, and the note says that the compiler was left out.

    In a process of its own: this one is to stay free of the compiler.
    """
    code = COMPILED.format(path=[p for p in sys.path if p])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

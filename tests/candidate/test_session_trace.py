"""Tracing through a session: a built module, and a script's own demo."""

import os
import sys

import pytest
import torch
from modules import FLAGSHIP, HEAD, called, line_of, loaded, made, module, randn

from attnlab.candidate.session import Session
from attnlab.records import UserEnvironment, from_json, plain
from attnlab.tracer.raw_trace import RawTrace

# ---------------------------------------------------------------- trace


def trace(session, *inputs):
    return from_json(RawTrace, called(session, *inputs, verb="trace", seed=0)["trace"])


def test_trace_shows_the_crash_at_its_line():
    """The flagship dies in out_proj, and the rows before it are all there."""
    session = made(FLAGSHIP, embed_dim=8, num_heads=2)
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1).expand(2, 4, 4)
    raw = trace(session, ("x", randn(2, 4, 8)), ("mask", mask))
    assert (raw.crash.op, raw.crash.module) == ("linear", "out_proj")
    assert raw.crash.line == line_of(FLAGSHIP, "CRASH")
    assert raw.ops[-1].op == "flatten"
    assert raw.input_kinds == ("float", "bool")


def test_trace_gives_an_argument_that_is_left_out_as_none():
    """A mask of None reaches a forward that has no default for it."""
    session = made(module("return x + (0 if mask is None else 1)", head="self, x, mask"))
    raw = trace(session, ("x", randn(2)), ("mask", None))
    assert (raw.crash, len(raw.ops), raw.inputs) == (None, 1, ((2,),))


def test_trace_of_a_module_with_a_memory():
    """A module that behaves otherwise at its second call is shown as it was at the first."""
    text = module(
        """\
self.calls += 1
y = x * float("nan") if self.calls == 1 else x * 2
return y + 1""",
        init="self.calls = 0",
    )
    raw = trace(made(text), ("x", randn(2)))
    assert [op.nan for op in raw.ops] == [True, True]
    assert raw.measured == ()


def test_trace_of_a_plain_function_and_of_a_subclassed_module():
    """A function has no module paths; a module that overrides forward has them."""
    session = loaded("def Net(x):\n    return x * 2\n")
    session.ask("build", name="Net", init={}, seed=0)
    assert [op.module for op in trace(session, ("x", randn(2))).ops] == [""]


# ---------------------------------------------------------------- demo


def demo(text, tmp_path, **more):
    before, path, cwd = dict(os.environ), [*sys.path], os.getcwd()  # noqa: PTH109
    main, argv = sys.modules["__main__"], sys.argv
    own = plain(UserEnvironment(cwd=str(tmp_path), env=before))
    try:
        answer = Session().ask("demo", file="demo.py", text=HEAD + text, path="", own=own, **more)
    finally:
        os.chdir(cwd)
        os.environ.update(before)
        sys.path[:], sys.argv, sys.modules["__main__"] = path, argv, main
    return answer if "raised" in answer else from_json(RawTrace, answer["trace"])


DEMO = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
    def forward(self, x):
        {body}
        return self.inner(x)
if __name__ == "__main__":
    y = Net()(torch.ones(2, 3))
    open("went-on", "w").close()
"""


def test_demo_records_the_first_call_and_stops(tmp_path):
    """The file runs as a script up to the end of its first module call, and no further."""
    raw = demo(DEMO.format(body="pass"), tmp_path)
    assert [(op.op, op.module, op.parents) for op in raw.ops] == [("linear", "inner", (-1,))]
    assert (raw.inputs, raw.input_kinds) == (((2, 3),), ("float",))
    assert not (tmp_path / "went-on").exists()


def test_a_demo_is_run_once_more_for_its_views(tmp_path):
    """Gradients, values and dtypes are those of the demo's own call and inputs."""
    options = {"backward": True, "values": ["x", "y"], "dtype": "float64"}
    raw = demo(DEMO.format(body="y = x * 2"), tmp_path, options=options)
    assert [p.name for p in raw.backward.parameters] == ["inner.weight", "inner.bias"]
    assert [heat.rows[0] for heat in raw.values] == [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0)]
    assert raw.ops[-1].dtype == "float64"


def test_the_attention_of_a_demo_is_looked_at(tmp_path):
    """What is asked of the heads is asked of the demo's own call too."""
    body = "x = (x @ x.mT).softmax(-1) @ x"
    raw = demo(DEMO.format(body=body), tmp_path, options={"attention": True})
    assert [(site.weights, site.context) for site in raw.attention] == [(2, 3)]


def test_demo_stops_after_a_call_that_caught_a_crash(tmp_path):
    """An exception that forward handled itself is no reason to run the rest of the script."""
    body = "try: x @ x\n        except RuntimeError: pass"
    raw = demo(DEMO.format(body=body), tmp_path)
    assert (raw.crash, len(raw.ops)) == (None, 1)
    assert not (tmp_path / "went-on").exists()


@pytest.mark.parametrize(
    ("body", "op", "error"),
    [("raise ValueError('no')", "", "ValueError"), ("x @ x", "matmul", "RuntimeError")],
)
def test_demo_shows_the_crash_of_its_call(tmp_path, body, op, error):
    """Python's exceptions and those of operations both end the trace as its fall."""
    raw = demo(DEMO.format(body=body), tmp_path)
    assert (raw.crash.op, raw.crash.error, raw.crash.file) == (op, error, "demo.py")


def test_demo_inside_an_exception_handler(tmp_path):
    """A script that calls the module while it handles another exception is no crash."""
    text = "class Net(nn.Module):\n    def forward(self, x): return x + 1\n"
    text += "try: 1 / 0\nexcept ZeroDivisionError: Net()(torch.ones(2))\nopen('went-on', 'w')\n"
    raw = demo(text, tmp_path)
    assert (raw.crash, len(raw.ops)) == (None, 1)
    assert not (tmp_path / "went-on").exists()


def test_demo_without_a_call_says_so(tmp_path):
    """A script that calls no module has nothing to show."""
    answer = demo("x = torch.ones(2)", tmp_path)
    assert answer["raised"]["message"] == "demo.py ran to its end without calling a module"


def test_demo_that_raises_before_its_call(tmp_path):
    """An exception of the script itself is shown at its line."""
    raw = demo("x = 1 / 0", tmp_path)
    assert (raw.crash.error, raw.crash.line, raw.ops) == ("ZeroDivisionError", 5, ())


TRAINING = """
net = nn.Linear(3, 1)
optimizer = torch.optim.AdamW(net.parameters())
for step in range(3):
    loss = (net(torch.ones(2, 3)) - step).square().mean()
    optimizer.zero_grad()
    loss.backward()
    {last}
    optimizer.step({closure})
open("went-on", "w").close()
"""


@pytest.mark.parametrize("step", [1, 3])
def test_a_step_of_training_is_recorded_alone(step, tmp_path):
    """From the end of the step before: forward and loss, and none of the optimizer's own rows."""
    raw = demo(TRAINING.format(last="", closure=""), tmp_path, options={"step": step})
    assert [op.op for op in raw.ops] == ["ones", "linear", "sub", "square", "mean"]
    assert raw.notes == (f"optimizer step {step}; what comes after it was not run",)
    assert not (tmp_path / "went-on").exists()


def test_a_closure_is_part_of_the_step(tmp_path):
    """An optimizer that is given a closure runs the model itself."""
    closure = "lambda: net(torch.ones(2, 3)).sum().sigmoid()"
    raw = demo(TRAINING.format(last="", closure=closure), tmp_path, options={"step": 1})
    assert "sigmoid" in [op.op for op in raw.ops]


def test_a_step_that_raises_is_a_crash(tmp_path):
    """It ends at the operation that raised."""
    raw = demo(TRAINING.format(last="loss @ loss", closure=""), tmp_path, options={"step": 1})
    assert (raw.crash.op, raw.notes) == ("matmul", ())


def test_too_few_steps(tmp_path):
    """How many there were is said."""
    answer = demo(TRAINING.format(last="", closure=""), tmp_path, options={"step": 4})
    assert answer["raised"]["message"] == "demo.py took only 3 optimizer steps"

"""Runs that crash, and runs in every surrounding that PyTorch has."""

import contextlib
import gc
import inspect
import subprocess
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F
from modules import names, randn, recorded
from torch import nn

from attnlab.records import from_json, to_json
from attnlab.tracer import raw_trace, recorder
from attnlab.tracer.recorder import Recorder


def here() -> int:
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


# ---------------------------------------------------------------- crashes


def test_the_row_that_raised_has_its_operands():
    """The operation, its line, the shapes and dtypes of all operands, and their rows."""

    def f(x, y):
        z = x * 2
        f.line = here() + 1
        return torch.matmul(z, y)

    got = recorded(f, randn(2, 3), randn(4, 5))
    crash = got.crash
    assert (crash.op, crash.line, crash.error) == ("matmul", f.line, "RuntimeError")
    assert crash.operands == ((2, 3), (4, 5))
    assert crash.dtypes == ("float32", "float32")
    assert crash.parents == (0, -2)
    assert names(got) == ["mul"]


def test_the_innermost_operation_is_the_one_that_raised():
    """A function of torch.nn.functional that calls others is one row, also when it raises."""
    got = recorded(lambda x: F.linear(x, torch.ones(4, 4)), randn(2, 3))
    assert got.crash.op == "linear"


def test_an_exception_that_the_code_caught_is_no_fall():
    """A try of one operation and a fallback is a run without a crash."""

    def f(x):
        with contextlib.suppress(RuntimeError):
            x @ x
        return x + 1

    got = recorded(f, randn(2, 3))
    assert (got.crash, names(got)) == (None, ["add"])


def test_python_code_that_raises_is_no_operation():
    """A ValueError of the user's own has its line and no operands, even after a caught crash."""

    def f(x):
        with contextlib.suppress(RuntimeError):
            x @ x
        f.line = here() + 1
        raise ValueError("odd\nsecond line")

    got = recorded(f, randn(2, 3))
    assert (got.crash.op, got.crash.operands, got.crash.message) == ("", (), "odd")


def test_a_crash_with_odd_arguments_can_be_told():
    """Slices, ellipses and dtypes among the arguments of a failing call stay out of the record."""
    got = recorded(lambda x: x[..., 0, :, slice(1, 2), 9], randn(2, 3))
    assert from_json(raw_trace.RawTrace, to_json(got)).crash.op == "getitem"


def test_a_crash_beyond_the_last_row_is_still_an_operation(monkeypatch):
    """Rows stop at the limit, the crash is described all the same."""
    monkeypatch.setattr(recorder, "MAX_ROWS", 5)

    def f(x):
        for _ in range(10):
            x = x + 1
        return x @ x

    got = recorded(f, randn(2, 3))
    assert len(got.ops) == 5
    assert got.crash.op == "matmul"
    assert "only the first" in got.notes[0]


# ---------------------------------------------------------------- surroundings


def test_works_with_gradients():
    """With requires_grad the rows are the same and no graph is kept by them."""
    net, x = nn.Linear(3, 3), randn(2, 3).requires_grad_()
    got = recorded(lambda x: net(x).softmax(-1).sum(), x)
    assert names(got) == ["linear", "softmax", "sum"]
    assert got.ops[2].max == pytest.approx(2.0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_works_in_every_gradient_mode(mode):
    """no_grad, inference_mode and enable_grad give the same rows."""

    def f(x):
        with mode():
            return (x * 2).view(-1).softmax(-1)

    got = recorded(f, randn(2, 3))
    assert [(op.op, op.view) for op in got.ops] == [
        ("mul", False),
        ("view", True),
        ("softmax", False),
    ]
    assert got.ops[2].max is not None


def test_works_under_autocast():
    """The dtype shown is the one that autocast chose."""

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.linear(x, torch.ones(3, 3))

    assert recorded(f, randn(2, 3)).ops[-1].dtype == "bfloat16"


@pytest.mark.parametrize(
    "transform",
    [
        torch.vmap,
        lambda f: torch.func.grad(lambda x: f(x).sum()),
        torch.func.jacrev,
        lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    ],
    ids=["vmap", "grad", "jacrev", "vmap of grad"],
)
def test_works_inside_function_transforms(transform):
    """Tensors without storage have rows with shapes; nothing of them outlives the transform."""
    got = recorded(transform(lambda x: (x @ x.mT).softmax(-1)), randn(2, 3, 3))
    assert ("matmul" in names(got), "softmax" in names(got)) == (True, True)
    assert got.crash is None


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_works_with_nested_tensors():
    """What has no shape makes no row, and the note says that something is not shown."""

    def f(x):
        ragged = torch.nested.nested_tensor([x[0], x[1, :2]])
        return (ragged * 2).to_padded_tensor(0.0) + 1

    got = recorded(f, randn(2, 3, 4))
    assert got.ops[-1].shape == (2, 3, 4)
    assert "not shown" in got.notes[0]


def test_works_with_jagged_tensors():
    """A ragged axis has the size -1, and the record can travel."""

    def f(x):
        ragged = torch.nested.nested_tensor([x[0], x[1, :2]], layout=torch.jagged)
        return ragged * 2

    got = recorded(f, randn(2, 3, 4))
    assert (got.crash, got.ops[-1].shape) == (None, (2, -1, 4))
    assert from_json(raw_trace.RawTrace, to_json(got)) == got


def test_works_with_fake_tensors():
    """Tensors that only pretend to have values have rows and no numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    def f():
        with FakeTensorMode():
            return torch.ones(2, 3) @ torch.ones(3, 4)

    got = recorded(f)
    assert [(op.op, op.shape, op.max) for op in got.ops if op.op == "matmul"] == [
        ("matmul", (2, 4), None)
    ]


def test_works_with_generators():
    """Code that yields between operations keeps its own lines."""

    def parts(x):
        for i in range(2):
            parts.line = here() + 1
            yield x[i] * 2

    def f(x):
        return torch.stack(list(parts(x)))

    got = recorded(f, randn(2, 3))
    assert names(got) == ["getitem", "mul", "getitem", "mul", "stack"]
    assert got.ops[1].line == parts.line


def test_works_with_a_subclass_that_objects():
    """A tensor subclass whose own functions raise does not break the run that is watched."""

    class Shy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func.__name__ in ("clone", "aminmax", "sum", "detach", "as_subclass", "reshape"):
                raise RuntimeError("do not look")
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        return x.as_subclass(Shy) * 2

    got = recorded(f, torch.ones(2, 3))
    assert got.crash is None
    assert (got.ops[-1].op, got.ops[-1].max) == ("mul", 2.0)


def test_keeps_no_large_tensor_of_the_model_alive():
    """Neither inputs, nor results on the way, nor outputs; of the small ones, no view of large."""
    dead = []

    def f(x):
        made = [x * 2, (x * 3).view(-1), torch.zeros(2000), x[:2], x.chunk(2)[0]]
        dead.extend(map(weakref.ref, made))

    rec = Recorder()
    with rec:
        f(randn(400, 3))
    gc.collect()
    assert len(rec.log) == 7
    assert [ref() for ref in dead] == [None] * 5


def test_tracing_imports_no_compiler():
    """torch._dynamo costs seconds: neither recording nor naming nor finding imports it."""
    code = (
        "import sys; sys.path.insert(0, 'tests/helpers')\n"
        "from modules import ATTENTION, FLAGSHIP, inspected\n"
        "assert inspected(FLAGSHIP, ATTENTION).trace.crash\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

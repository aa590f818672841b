"""The kernels below each row."""

import subprocess
import sys

import torch
from shots import Plain, capture_of, x

from attnlab.records import TraceOptions

ATEN = TraceOptions(aten=True)


def below(got):
    return {op.index: [k.op.split(".")[1] for k in op.kernels] for op in got.ops}


def test_each_row_has_its_own_kernels():
    """linear is a view and an addmm; softmax is one kernel, with the shape that it makes."""
    got = capture_of(
        lambda x, w: torch.nn.functional.linear(x, w).softmax(-1), options=ATEN, x=x(), w=x(3, 8)
    )
    assert below(got)[0][-2:] == ["mm", "_unsafe_view"]
    assert below(got)[1] == ["_softmax"]
    (kernel,) = got.ops[1].kernels
    assert (kernel.op, kernel.shape, kernel.dtype) == (
        "aten._softmax.default",
        (2, 4, 3),
        "float32",
    )


def test_what_makes_no_row_gives_its_kernels_to_nobody():
    """Reading a number runs a kernel between two rows."""

    def f(x):
        total = x.sum()
        total.item()
        return x * 2

    assert below(capture_of(f, options=ATEN, x=x())) == {0: ["sum"], 1: ["mul"]}


def test_all_outputs_of_an_operation_have_its_kernels():
    """chunk is one kernel and three rows."""
    assert (
        list(below(capture_of(lambda x: x.chunk(2, -1), options=ATEN, x=x())).values())
        == [["split"]] * 2
    )


def test_rows_are_the_same_as_without():
    """The second run changes nothing but the kernels."""
    plain, more = capture_of(Plain(), x=x()), capture_of(Plain(), options=ATEN, x=x())
    assert [(o.op, o.line, o.max) for o in more.ops] == [(o.op, o.line, o.max) for o in plain.ops]
    assert all(op.kernels for op in more.ops)


def test_a_call_that_does_something_else_the_second_time_is_told():
    """A module with a memory: where the runs part, kernels end and a note says where."""
    calls = []

    def f(x):
        calls.append(1)
        x = x * 2
        return x + 1 if len(calls) == 1 else x.sum()

    got = capture_of(f, options=ATEN, x=x())
    assert below(got) == {0: ["mul"], 1: []}
    assert got.notes[0].startswith("the kernels end at add on line ")


def test_a_crash_has_the_kernels_before_it():
    """The rows up to the crash are complete."""
    got = capture_of(lambda x: (x * 2) @ x, options=ATEN, x=x(2, 3))
    assert (got.crash.op, below(got)) == ("matmul", {0: ["mul"]})


def test_kernels_are_seen_without_the_compiler():
    """Entering a dispatch mode imports the compiler (seconds), unless the mode says no."""
    code = (
        f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}\n"
        "from shots import Plain, capture_of, x\nfrom attnlab.records import TraceOptions\n"
        "options = TraceOptions(aten=True, time=True, memory=True, attention=True, values=('q',))\n"
        "assert capture_of(Plain(), options=options, x=x()).ops[0].kernels\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

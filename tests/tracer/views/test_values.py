"""Values by name: variables, inputs, weights, modules, lines."""

import sys

import pytest
import torch
from shots import Plain, capture_of, x
from torch import nn

from attnlab.records import TraceOptions


def asked(what, name, **given):
    return capture_of(what, options=TraceOptions(values=(name,)), **given)


def titles(got):
    return [heat.title.split(" on line")[0].split(", of")[0] for heat in got.values]


def numbers(heat):
    return torch.tensor(heat.rows)


def test_a_variable_by_its_name():
    """The matrix is that of the first sequence and head, and says so; it knows its row."""
    got = asked(Plain(), "weights", x=x())
    (heat,) = got.values
    op = got.ops[heat.index]
    assert op.op == "softmax"
    assert heat.title == f"weights[0, 0, :, :] on line {op.line}, of shape (2, 2, 4, 4)"
    assert numbers(heat).sum(-1).tolist() == pytest.approx([1.0] * 4, abs=1e-4)
    assert (len(heat.axes), heat.cut) == (2, False)


def test_a_variable_however_it_got_its_value():
    """Unpacking, a walrus, a loop, a function that returns it: each value of the name is there."""

    def double(t):
        return t * 2

    def f(x):
        a, y = x, x + 1
        y = double(y)
        if (y := y + 1) is not None:
            for y in x:  # noqa: B007
                pass
        return a

    got = asked(f, "y", x=torch.tensor([1.0, 2.0]))
    assert [heat.rows for heat in got.values] == [((2, 3),), ((4, 6),), ((5, 7),), ((1,),)]
    assert got.notes == ("y had 5 values; the first 4 are shown",)


def test_a_variable_that_is_written_into_has_a_new_value():
    """masked_fill_ changes the scores without an assignment."""

    def f(x):
        scores = x * 2
        scores.fill_(7.0)
        return scores

    assert [heat.rows[0][0] for heat in asked(f, "scores", x=torch.ones(1)).values] == [2, 7]


def test_a_tensor_that_is_handed_on_is_one_value():
    """`mask` in the module and `mask` in the function that it calls are the same tensor."""

    def inner(mask):
        return mask + 1

    def f(x):
        mask = x > 0
        return inner(mask)

    assert len(asked(f, "mask", x=x()).values) == 1


def test_an_input_a_weight_and_a_submodule_by_their_names():
    """What has a name without a variable is found too."""

    class Net(Plain):
        def forward(self, tokens):
            return super().forward(tokens)

    assert titles(asked(Net(), "given", given=x())) == ["given[0, :, :]"]
    assert titles(asked(Net(), "proj.weight", given=x())) == ["proj.weight"]
    got = asked(Net(), "proj", given=x())
    assert titles(got) == ["proj[0, :, :]"]
    assert got.ops[got.values[0].index].op == "linear"


def test_a_line_by_its_number():
    """The variable that a line assigns, or what it returns, or what its last row makes."""

    def f(x):
        y = x.mT + 1
        [x * 3]
        return y * 2

    first = f.__code__.co_firstlineno
    got = [asked(f, str(first + i), x=torch.ones(2, 2)).values[0] for i in (1, 2, 3)]
    assert [heat.title.split()[0] for heat in got] == ["y", "mul", "the"]
    assert [heat.rows[0][0] for heat in got] == [2, 3, 4]


def test_what_does_not_exist_is_said_with_what_does():
    """A slip of the finger gets the name that was meant."""
    got = asked(Plain(), "wieghts", x=x())
    known = "no variable, input, weight or submodule with a tensor is called 'wieghts'"
    assert (got.values, got.notes) == ((), (f"{known}; there are weights",))
    (note,) = asked(Plain(), "9999", x=x()).notes
    assert note == "line 9999 made no tensor, or was not reached"


def test_a_debugger_is_not_lost():
    """Whoever follows the process before, as a debugger or a coverage tool, does so afterwards."""
    seen = []

    def tracer(frame, event, arg):
        seen.append(event)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        asked(Plain(), "scores", x=x())
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is tracer


def test_looking_makes_no_rows():
    """The copies that are taken do not appear in the trace, nor do they shift its rows."""
    got, plain = asked(Plain(), "scores", x=x()), capture_of(Plain(), x=x())
    assert [op.op for op in got.ops] == [op.op for op in plain.ops]
    assert got.ops[got.values[0].index].op == "div"


def test_values_before_a_crash():
    """What was computed until then is what one wants to see."""

    def f(x):
        scores = x * 2
        return scores @ x

    got = asked(f, "scores", x=x(2, 3))
    assert (got.crash.op, titles(got)) == ("matmul", ["scores"])


def test_the_output_of_a_module_that_returns_several():
    """The first tensor of a tuple."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 5)

        def forward(self, x):
            return self.lstm(x)[0]

    (heat,) = asked(Net(), "lstm", x=x(2, 4, 3)).values
    assert heat.title.endswith("(2, 4, 5)")

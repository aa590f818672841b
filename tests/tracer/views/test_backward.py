"""Gradients by row and by parameter: how large, where they break, who gets none and why."""

from dataclasses import dataclass

import pytest
import torch
from health_modules import capture_of, told
from modules import randn
from torch import nn

X = randn(2, 5, 8)


class Net(nn.Module):
    """Two layers, and a body that each test brings."""

    def __init__(self, body):
        super().__init__()
        self.p, self.q = nn.Linear(8, 8), nn.Linear(8, 8)
        self.body = body

    def forward(self, x):
        return self.body(self, x)


def back(body, x=X):
    return capture_of(Net(body), x, backward=True)


def norms(trace):
    return {p.name: p.norm for p in trace.backward.parameters}


# ---------------------------------------------------------------- norms


def test_every_row_parameter_and_input_has_the_norm_of_its_gradient():
    """Against autograd itself, with the same cotangent: a module may have no parameters."""
    net, x = Net(lambda net, x: net.q(net.p(x).tanh())), X.clone().requires_grad_()
    trace = capture_of(net, X, backward=True)
    out = net(x)
    seed = torch.randn(out.shape, generator=torch.Generator().manual_seed(0x5EED))
    *wanted, of_input = torch.autograd.grad(out, [*net.parameters(), x], seed)
    expected = [float(g.norm()) for g in wanted]
    assert [p.norm for p in trace.backward.parameters] == pytest.approx(expected)
    assert [p.norm for p in trace.backward.inputs] == pytest.approx([float(of_input.norm())])
    assert [op.op for op in trace.ops] == ["linear", "tanh", "linear"]
    assert trace.ops[2].grad == pytest.approx(float(seed.norm()))
    assert all(op.grad > 0 for op in trace.ops)


def test_a_part_that_reaches_no_output_has_no_norm():
    """Of what unbind returns, autograd hands over no gradient for a part that is detached."""

    def body(net, x):
        q, v = net.p(x).unflatten(-1, (2, 4)).unbind(-2)
        return (q @ q.mT).detach() @ v

    trace = back(body)
    assert (trace.backward.message, norms(trace)["p.weight"] > 0) == (
        "no gradient reached q.weight, q.bias", True)  # fmt: skip


def test_a_right_module_has_nothing_to_say():
    """No message, no finding, no origin."""
    trace = back(lambda net, x: net.q(net.p(x).relu()))
    assert (trace.findings, trace.backward.origin, trace.backward.message) == ((), None, "")


def test_the_users_own_gradients_are_left_alone():
    """`.grad` of a weight is neither made nor changed; the input may be written to."""
    net = Net(lambda net, x: net.p(x.mul_(2)))
    net.p.weight.grad = torch.ones(8, 8)
    trace = capture_of(net, X, backward=True)
    assert torch.equal(net.p.weight.grad, torch.ones(8, 8))
    assert (net.p.bias.grad, trace.backward.message[:20]) == (None, "no gradient reached ")


@dataclass
class Answer:
    main: torch.Tensor
    rest: dict


def test_outputs_are_found_in_containers():
    """Dataclasses, dicts and tuples, as the models of libraries answer."""
    trace = back(lambda net, x: Answer(net.p(x), {"more": (net.q(x), 3)}))
    assert all(norm > 0 for norm in norms(trace).values())


class Cached(nn.Module):
    """Makes its table in the first call, as rotary embeddings do."""

    def __init__(self):
        super().__init__()
        self.p, self.table = nn.Linear(8, 8), None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(8).cos()
        return self.p(x) * self.table


def test_a_module_that_keeps_a_table_is_shown_as_it_runs_later():
    """The first call has rows that no other call has; gradients belong to those of the others."""
    trace = capture_of(Cached(), X, backward=True)
    assert [op.op for op in trace.ops] == ["linear", "mul"]
    assert all(op.grad for op in trace.ops)


def test_a_module_that_never_runs_twice_alike_says_so():
    """Parameters have their gradients, rows have none."""
    calls = []

    def body(net, x):
        calls.append(1)
        for _ in calls:
            x = net.p(x)
        return x

    trace = back(body)
    assert trace.backward.message == "the run with gradients took another path than the one shown"
    assert norms(trace)["p.weight"] > 0
    assert [op.grad for op in trace.ops] == [None]


# ---------------------------------------------------------------- where they break


@pytest.mark.parametrize(
    ("body", "op"),
    [
        (lambda net, x: torch.where((y := net.p(x).relu()) > 0, y.sqrt(), 0.0), "sqrt"),
        (lambda net, x: torch.where((y := net.p(x).relu()) > 0, y.log(), 0.0), "log"),
        (lambda net, x: net.p(x).clamp(min=0).pow(0.5), "pow"),
    ],
)
def test_a_gradient_that_breaks_is_found_at_its_operation(body, op):
    """The forward pass is finite; the slope at zero is not, and a `where` does not help."""
    trace = back(body)
    (finding,) = trace.findings
    assert (finding.rule, finding.severity, finding.op) == ("gradient-origin", "error", op)
    assert trace.ops[trace.backward.origin].op == op
    assert "its slope at the edge of its domain is infinite" in finding.message


def test_nan_from_zero_times_infinity_is_explained():
    """The gradient of the chosen branch is 0, and 0 * inf is NaN."""
    trace = back(lambda net, x: torch.where((y := net.p(x).relu()) > 0, y.sqrt(), 0.0))
    assert "0 * inf is NaN: a where or a mask after it does not help" in trace.backward.message


def test_a_forward_pass_with_nan_is_blamed_itself():
    """One origin is enough: that of the forward pass."""
    trace = back(lambda net, x: net.p(x).sqrt())
    assert trace.backward.message.startswith("the forward pass has NaN already, from sqrt")
    assert [f.rule for f in trace.findings] == ["nan-origin"]


def test_nan_that_the_outputs_no_longer_show_is_an_error_of_its_gradients():
    """nan_to_num after a softmax over nothing: values look right, and training gets NaN."""
    trace = back(lambda net, x: net.q((net.p(x) - torch.inf).softmax(-1).nan_to_num()))
    assert not trace.ops[-1].nan
    found = [f for f in trace.findings if f.severity == "error"]
    assert [f.rule for f in found] == ["gradient-origin"]
    assert found[0].message.endswith("it was replaced, but not in the gradients")


# ---------------------------------------------------------------- who gets none


def test_a_detach_on_the_way_is_found():
    """Named with the parameters that reach the output through it alone."""
    trace = back(lambda net, x: net.q(x) + net.p(x).detach())
    (finding,) = trace.findings
    assert (finding.rule, finding.op, finding.severity) == ("gradient-cut", "detach", "warning")
    assert finding.message == (
        "detach cuts the gradient: p.weight, p.bias reach the output through it, and get none"
    )
    assert norms(trace)["p.weight"] is None
    assert norms(trace)["q.weight"] > 0


def test_a_block_without_gradients_is_found():
    """The first operation in it that a parameter takes part in."""

    def body(net, x):
        with torch.no_grad():
            y = net.q(x)
        return net.p(x) + y

    (finding,) = back(body).findings
    assert finding.message.startswith("linear under no_grad cuts the gradient: q.weight, q.bias")


def test_a_second_way_round_a_detach_is_enough():
    """A stopped gradient is a design where the parameter learns by another way."""
    assert back(lambda net, x: net.q(net.p(x)) + net.p(x).detach()).findings == ()


def test_parameters_that_are_not_used_are_told_and_are_no_finding():
    """Mask tokens and the like are there for other inputs."""
    trace = back(lambda net, x: net.p(x))
    assert trace.findings == ()
    assert trace.backward.message == "no gradient reached q.weight, q.bias"


def test_a_gradient_of_exactly_zero_is_told():
    """It arrived, and says nothing."""
    assert "the gradient of q.weight is exactly 0" in back(
        lambda net, x: net.p(x) + net.q(x * 0)
    ).backward.message.replace("of q.weight, q.bias", "of q.weight")


def test_frozen_parameters_are_not_lost_ones():
    """They asked for no gradient."""
    net = Net(lambda net, x: net.q(net.p(x)))
    net.p.requires_grad_(requires_grad=False)
    trace = capture_of(net, X, backward=True)
    assert trace.findings == ()
    assert trace.backward.message == "p.bias, p.weight asked for none (requires_grad=False)"


# ---------------------------------------------------------------- no backward pass


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (lambda net, x: net.p(x).argmax(-1), "no output of the module depends on what has one"),
        (lambda net, x: x @ x, "the forward pass ended with an exception"),
        (lambda net, x: net.p(x).sigmoid().mul_(2).exp_() * 1, ""),
    ],
)
def test_why_there_are_no_gradients(body, why):
    """In words; the rows stand all the same."""
    trace = back(body)
    assert why in trace.backward.message
    assert trace.ops or trace.crash


def test_a_write_that_autograd_cannot_undo_is_an_error_at_its_line():
    """What a training step would have raised, and the operation that is to blame."""

    def body(net, x):
        y = net.p(x).exp()
        z = y * 2
        y.add_(1)
        return z

    trace = back(body)
    assert "modified by an inplace operation" in trace.backward.message
    assert [op.grad for op in trace.ops] == [None] * 4
    (finding,) = trace.findings
    assert (finding.rule, finding.severity) == ("backward-raises", "error")
    assert finding.message.startswith("add_ overwrites the result of exp on line ")
    assert finding.line == trace.ops[-1].line


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda y: y.mul_(2), "mul_"),
        (lambda y: y.__setitem__((0, 0), 0.0), "setitem"),
        (lambda y: y.__iadd__(1), "add_"),
    ],
)
def test_whatever_writes_is_named(write, name):
    """By a method, an index or an operator."""

    def body(net, x):
        y = net.p(x).sigmoid()
        write(y)
        return y * 1

    assert f"{name} overwrites" in back(body).findings[0].message


def test_a_parameter_that_is_written_to_is_an_error_at_its_line():
    """The forward pass itself raises, with gradients alone."""
    trace = back(lambda net, x: x * net.p.weight.clamp_(min=0).sum())
    (finding,) = trace.findings
    assert (finding.rule, finding.op) == ("backward-raises", "clamp_")
    assert "a leaf Variable that requires grad" in finding.message


def test_backward_is_made_only_when_asked_for():
    """It costs a second run."""
    assert capture_of(Net(lambda net, x: net.p(x)), X).backward is None
    assert told(Net(lambda net, x: net.p(x).detach()), X) == []

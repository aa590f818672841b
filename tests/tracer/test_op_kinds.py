"""What an operation is, told by its function; and functions that are opened."""

import pytest
import torch
import torch.nn.functional as F
from modules import names, recorded
from shots import Plain, x
from torch import nn

from attnlab.candidate.session import Session
from attnlab.records import from_json
from attnlab.tracer import op_kinds
from attnlab.tracer.op_kinds import kind_of, outputs
from attnlab.tracer.raw_trace import RawTrace


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (torch.matmul, "matmul"),
        (torch.Tensor.T.__get__, "T"),
        (torch.Tensor.shape.__get__, ""),
        (torch.Tensor.requires_grad.__get__, ""),
    ],
)
def test_getters_make_a_row_only_where_they_make_a_view(func, name):
    """x.T is an operation, x.shape is none."""
    assert kind_of(func).name == name


@pytest.mark.parametrize(
    ("func", "writes"),
    [
        (torch.Tensor.add_, True),
        (torch.Tensor.__setitem__, True),
        (torch.Tensor.__iand__, True),
        (torch.Tensor.__and__, False),
        (torch.Tensor.__invert__, False),
        (torch.Tensor.add, False),
    ],
)
def test_what_writes_into_its_operand_is_known(func, writes):
    """A trailing underscore means a write, those of an operator do not."""
    assert kind_of(func).writes is writes


def test_functions_are_not_remembered_without_end(monkeypatch):
    """A program that makes a new function for each call does not fill the memory."""
    monkeypatch.setattr(op_kinds, "MAX_KINDS", len(op_kinds.KINDS))
    assert kind_of(lambda: None).name == "<lambda>"
    assert len(op_kinds.KINDS) == op_kinds.MAX_KINDS


def test_a_callable_without_a_hash_has_a_kind():
    """An object that cannot be a key of a dict still has a name."""

    class UnexpectedOutput:
        __hash__ = None
        __name__ = "odd"

    assert kind_of(UnexpectedOutput()).name == "odd"


def test_outputs_are_tensors_only():
    """max gives a value and an index, an assignment to a slice writes into its first operand."""
    t = x()
    assert [o.shape for o in outputs(kind_of(torch.max), (), t.max(1))] == [(2, 8), (2, 8)]
    assert outputs(kind_of(torch.Tensor.__setitem__), (t, 0, 1.0), None) == (t,)
    assert outputs(kind_of(torch.Tensor.item), (t,), 3.0) == ()


# ---------------------------------------------------------------- opened functions


class User(nn.Module):
    def __init__(self, **more):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **more)

    def forward(self, q, **more):
        return self.attention(q, q, q, **more)[0]


def test_multihead_attention_is_not_one_opaque_row():
    """The projection, the products, the softmax are rows at the line of the user's call."""
    got = recorded(User(batch_first=True).eval(), x())
    assert {"linear", "bmm", "softmax"} <= set(names(got))
    assert "multi_head_attention_forward" not in names(got)
    (line,) = {(op.file.rsplit("/")[-1], op.source) for op in got.ops}
    assert line == ("test_op_kinds.py", "return self.attention(q, q, q, **more)[0]")
    assert {op.module for op in got.ops} == {"attention"}


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("mask", [True, False])
def test_what_is_opened_gives_the_same_result(weights, mask):
    """The twin computes what the function computes, to the last bit."""
    net, more = User(batch_first=True), {"need_weights": weights}
    if mask:
        more["key_padding_mask"] = torch.zeros(2, 4).index_fill(1, torch.tensor([3]), 1.0).bool()
    truth, traced = net(x(), **more), []
    recorded(lambda q: traced.append(net(q, **more)), x())
    assert torch.equal(traced[0], truth)


def test_the_line_of_a_target_of_torch_is_inside_the_opened_function():
    """Where nn.MultiheadAttention itself is traced, rows do not all stand at its one call."""
    session = Session()
    session.target = nn.MultiheadAttention(8, 2)
    answer = session.ask("trace", inputs=[("query", x()), ("key", x()), ("value", x())], seed=0)
    got = from_json(RawTrace, answer["trace"])
    assert len({op.line for op in got.ops}) > 5
    assert {op.file.rsplit("/")[-1] for op in got.ops} == {"functional.py"}


def test_a_crash_inside_an_opened_function_is_its_own():
    """An operation that raises in there is the one that is told; a refusal names the function."""
    net = nn.MultiheadAttention(8, 2).eval()
    crash = recorded(lambda q: net(q, q, q, attn_mask=torch.zeros(4, 7)), x()).crash
    assert (crash.op, crash.error) == ("multi_head_attention_forward", "RuntimeError")
    crash = recorded(lambda q: F.linear(net(q, q, q)[0], torch.ones(3, 3)), x()).crash
    assert crash.op == "linear"


def test_plain_attention_is_not_touched():
    """Code that calls no opened function has the rows that it always had."""
    assert names(recorded(Plain(), x()))[:2] == ["linear", "chunk"]

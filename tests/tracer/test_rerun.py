"""A further run of the same call, row by row."""

import torch
from modules import recorded
from shots import Plain, x
from torch import nn

from attnlab.tracer import rerun as spies
from attnlab.tracer.raw_trace import RawTrace
from attnlab.tracer.rerun import RerunMode, matching_rows, note_divergence


class Listing(RerunMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_outputs(self, row, call, outs):
        self.seen.append((row, call.kind.name, len(outs)))


def spied(what, *inputs):
    spy = Listing()
    with spy:
        what(*inputs)
    return spy


def test_rows_are_those_of_the_recorder():
    """Same rows, same numbers: also of what is opened, and of operations with many outputs."""

    def f(x):
        y = x.T.T
        y[0] = 1.0
        a, b = x.chunk(2)
        return nn.MultiheadAttention(8, 2)(a, b, b), torch.max(x, 0), x.shape

    for what, given in ((f, x(4, 8)), (Plain(), x())):
        raw, spy = recorded(what, given), spied(what, given)
        assert [(op.op, op.shape) for op in raw.ops] == spy.rows
        assert matching_rows(raw, spy) == len(raw.ops)


def test_a_call_knows_its_first_row():
    """chunk makes two rows, and what comes next is the third."""
    assert spied(lambda x: x.chunk(2)[0] + 1, x(4, 2)).seen == [(0, "chunk", 2), (2, "add", 1)]


def test_the_device_is_waited_for():
    """A GPU returns before it is done: a clock has to wait."""
    waits = []
    spy = Listing()
    spy.wait = lambda: waits.append(1)
    with spy:
        x() + 1
    assert len(waits) == len(spy.seen)


def test_runs_that_differ_agree_up_to_there():
    """By name or by shape; a run that ends early agrees with what it has."""
    raw = recorded(lambda t: (t * 2).sum(), x())
    assert matching_rows(raw, spied(lambda t: (t * 2).mean(), x())) == 1
    assert matching_rows(raw, spied(lambda t: (t * 2).sum(0), x())) == 1
    assert matching_rows(raw, spied(lambda t: t * 2, x())) == 1
    assert "the times end at sum on line" in note_divergence(raw, 1, "the times").notes[0]
    assert note_divergence(raw, 2, "the times") is raw


def test_rows_end_where_the_recorder_ends(monkeypatch):
    """A run without end fills no memory here either."""
    monkeypatch.setattr(spies, "MAX_ROWS", 3)
    assert len(spied(lambda t: [t + 1 for _ in range(9)], x()).rows) == 3
    assert matching_rows(RawTrace(), RerunMode()) == 0

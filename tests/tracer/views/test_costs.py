"""Seconds and bytes of each row."""

import pytest
import torch
from shots import Plain, capture_of, x

from attnlab.records import TraceOptions
from attnlab.sizes import format_bytes
from attnlab.tracer.views import costs

TIME, MEMORY = TraceOptions(time=True), TraceOptions(memory=True)


def test_the_row_that_takes_long_has_the_time(monkeypatch):
    """A product of large matrices takes longer than one addition; the note gives the total."""
    monkeypatch.setattr(costs, "RUNS", 3)
    got = capture_of(lambda x: (x @ x) + 1, options=TIME, x=x(500, 500))
    product, addition = (op.seconds for op in got.ops)
    assert product > addition > 0
    assert got.notes[0].startswith("times are medians of 2 runs")


def test_a_slow_model_is_not_run_again_and_again(monkeypatch):
    """After the first run that is long enough there is no second one."""
    monkeypatch.setattr(costs, "LONG", 0.0)
    calls = []
    got = capture_of(lambda x: calls.append(1) or x * 2, options=TIME, x=x())
    assert len(calls) == 2  # the trace itself, and one with a clock
    assert got.ops[0].seconds > 0


def test_the_time_of_the_users_python_is_left_out(monkeypatch):
    """The time is that of the operation alone, by a clock that moves on by a second when read."""
    clock = [0.0]

    def read():
        clock[0] += 1.0
        return clock[0]

    def f(x):
        x = x * 2
        clock[0] += 1000.0  # Python that takes its time
        return x + 1

    monkeypatch.setattr("attnlab.tracer.rerun.perf_counter", read)
    assert [op.seconds for op in capture_of(f, options=TIME, x=x()).ops] == [1.0, 1.0]


def test_the_outputs_of_one_operation_share_its_time():
    """The first row of a chunk has it, so that the times add up."""
    got = capture_of(lambda x: x.chunk(2, -1), options=TIME, x=x())
    assert [op.seconds is None for op in got.ops] == [False, True]


def test_bytes_are_those_of_new_memory():
    """A view and an in-place write bring none; a result in float64 brings twice as much."""

    def f(x):
        y = x * 2
        y.add_(1)
        return y.mT, y.double()

    got = capture_of(f, options=MEMORY, x=x(4, 4))
    assert [(op.op, op.bytes) for op in got.ops] == [
        ("mul", 64),
        ("add_", 0),
        ("mT", 0),
        ("double", 128),
    ]


def test_the_peak_counts_what_is_alive():
    """Ten temporary results, one after the other, never take the memory of ten."""

    def f(x):
        for _ in range(10):
            x = x + 1
        return x

    (note,) = capture_of(f, options=MEMORY, x=x(1024)).notes
    assert note.startswith("at most 8.19 kB of outputs were alive at once, after add on line ")


def test_time_and_memory_together():
    """Both stand in the rows that were asked for once."""
    got = capture_of(Plain(), options=TraceOptions(time=True, memory=True), x=x())
    assert len(got.notes) == 2
    assert all(op.bytes is not None for op in got.ops)
    assert got.ops[0].seconds > 0


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (2048, "2.05 kB"), (1 << 20, "1.05 MB"), (3 * 10**9, "3 GB")],
)
def test_sizes_are_said_as_people_say_them(count, text):
    """The largest unit that fits."""
    assert format_bytes(count) == text


def test_inside_a_vmap_there_are_no_bytes():
    """Tensors without a storage have no size."""
    got = capture_of(torch.vmap(lambda t: t * 2), options=MEMORY, x=x())
    assert [op.bytes for op in got.ops] == [None]

"""Another dtype for as long as a run lasts."""

import pytest
import torch
from modules import randn
from torch import nn

from attnlab.records import Container, TraceOptions
from attnlab.tracer.cast import cast, cast_inputs, pack

HALF = TraceOptions(dtype="float16")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.register_buffer("table", randn(4))
        self.register_buffer("places", torch.arange(4))


def test_weights_and_buffers_are_cast_and_given_back():
    """The same objects with the same bits, also after an exception."""
    net = Net()
    weight, table, bits = net.proj.weight, net.table, net.proj.weight.detach().clone()
    with cast(net, HALF):
        assert (net.proj.weight.dtype, net.table.dtype) == (torch.float16, torch.float16)
        assert net.places.dtype is torch.int64
    with pytest.raises(RuntimeError, match="same dtype"), cast(net, HALF):
        net.proj(randn(2, 4))
    assert net.proj.weight is weight
    assert net.table is table
    assert torch.equal(weight, bits)


def test_float32_leaves_everything_as_it_is():
    """It is what is made when nobody asks: a float64 table of the author stays one."""
    net = Net().double()
    with cast(net, TraceOptions()):
        assert net.table.dtype is torch.float64


def test_another_device_takes_weights_and_inputs_along():
    """And the CPU takes none: a model stays where its author put it."""
    net, x = Net().to("meta"), randn(2)
    with cast(net, TraceOptions(device="meta")):
        assert net.places.is_meta
    with cast(net, HALF):
        assert net.table.is_meta
    assert cast_inputs([("x", x)], TraceOptions(device="meta"))[0][1].is_meta


def test_inputs_are_cast_but_for_whole_numbers_and_those_left_out():
    """Indices stay indices."""
    given = [("x", randn(2)), ("ids", torch.arange(2)), ("mask", None)]
    (x, ids, mask) = (t for _, t in cast_inputs(given, HALF))
    assert (x.dtype, ids.dtype, mask) == (torch.float16, torch.int64, None)


def test_a_callable_without_weights_can_be_cast():
    """A function has nothing to cast."""
    with cast(None, HALF):
        pass


def test_parts_are_packed_where_the_first_of_them_stands():
    """An argument of several tensors comes as one value, also with containers inside."""
    held = (
        Container(name="past", kind="list", keys=("0", "1")),
        Container(name="past.0", kind="dict", keys=("k", "v")),
        Container(name="past.1", kind="tuple", keys=("0",)),
    )
    k, v, w, x = randn(1), randn(2), randn(3), randn(4)
    given = [("past.0.k", k), ("past.0.v", v), ("past.1.0", w), ("x", x), ("mask", None)]
    assert pack(given, {c.name: c for c in held}) == [
        ("past", [{"k": k, "v": v}, (w,)]),
        ("x", x),
        ("mask", None),
    ]

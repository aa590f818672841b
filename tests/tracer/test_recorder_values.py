"""Views, writes in place and numbers: what a row says of the values."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from modules import randn, recorded

# ---------------------------------------------------------------- views


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(-1),
        lambda x: x.reshape(4, 6),
        lambda x: x.transpose(0, 1),
        lambda x: x.mT,
        lambda x: x.unsqueeze(0),
        lambda x: x.expand(5, 2, 3, 4),
        lambda x: x[0],
        lambda x: x.narrow(2, 1, 2),
        lambda x: x.contiguous(),
        lambda x: x.float(),
        lambda x: x.detach(),
        lambda x: x.as_strided((2,), (1,)),
        lambda x: torch.movedim(x, 0, 2),
    ],
)
def test_what_shares_storage_is_a_view(view):
    """A view is marked as one, also where `contiguous` or `to` had nothing to do."""
    (op,) = recorded(view, randn(2, 3, 4)).ops
    assert op.view


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.clone(),
        lambda x: x.mT.reshape(-1),
        lambda x: x.mT.contiguous(),
        lambda x: x[[0]],
        lambda x: x.double(),
        lambda x: x.mul_(2),
        lambda x: torch.cat([x, x]),
        lambda x: x @ x.mT,
    ],
)
def test_what_has_a_storage_of_its_own_is_no_view(copy):
    """A copy is not marked as a view; nor is an in-place operation, which makes nothing new."""
    assert not recorded(copy, randn(2, 3, 4)).ops[-1].view


def test_strides_are_those_of_the_tensor():
    """A transposed view shows the strides that make `view` fail on it later."""
    (op,) = recorded(lambda x: x.transpose(0, 1), randn(2, 3)).ops
    assert (op.shape, op.stride) == ((3, 2), (1, 3))


# ---------------------------------------------------------------- in place


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda x: x.mul_(3.0), "mul_"),
        (lambda x: x.__iadd__(1.0), "add_"),
        (lambda x: x.__ipow__(2.0), "pow_"),
        (lambda x: x.masked_fill_(x > 0, -9.0), "masked_fill_"),
        (lambda x: F.relu(x, inplace=True), "relu"),
        (lambda x: torch.add(x, 5.0, out=x), "add"),
        (lambda x: x.__setitem__(0, 7.0), "setitem"),
    ],
)
def test_in_place_operations_show_the_values_that_they_wrote(write, name):
    """The row of an in-place operation has the numbers after it, and later rows descend from it."""

    def f(x):
        y = x.clone()
        write(y)
        f.truth = y.min().item(), y.max().item()
        return y + 0

    got = recorded(f, randn(2, 3))
    at = next(op for op in got.ops if op.op == name)
    assert (at.min, at.max, at.view) == (*map(pytest.approx, f.truth), False)
    assert got.ops[-1].parents == (at.index,)


def test_a_view_of_what_was_written_later_has_the_new_numbers():
    """Numbers are taken over from a tensor only as long as nobody wrote into its storage."""

    def f(x):
        y = x.clone()
        flat = y.view(-1)
        y.fill_(math.nan)
        return flat.view(3, 2)

    got = recorded(f, randn(2, 3))
    assert [op.nan for op in got.ops] == [False, False, True, True]


def test_writing_through_a_slice_is_seen_in_the_whole():
    """`table[:, 0::2] = inf` is a write into table."""

    def f(x):
        table = torch.zeros(4, 4)
        table[:, 0::2] = math.inf
        half = table[:, 1::2]
        return table.mT, half

    got = recorded(f, randn(1))
    assert [(op.op, op.inf) for op in got.ops] == [
        ("zeros", False),
        ("setitem", True),
        ("getitem", False),
        ("mT", True),
    ]


def test_memory_without_values_is_not_judged():
    """`torch.empty` may hold any garbage, also half filled: it has no numbers and no flags."""
    junk = [torch.full((64, 64), math.nan) for _ in range(8)]
    del junk

    def f(x):
        table = torch.empty(64, 64)
        table[:, 0::2] = 1.0
        return table.unsqueeze(0), torch.zeros(2)

    got = recorded(f, randn(1))
    assert [(op.min, op.nan, op.inf) for op in got.ops[:3]] == [(None, False, False)] * 3
    assert got.ops[3].max == 0.0


def test_an_address_without_values_may_be_given_to_a_tensor_with_values():
    """What is made where a `torch.empty` lay before has numbers again."""

    def f(x):
        for _ in range(30):
            blank = torch.empty(7)
            del blank
            torch.ones(7)

    got = recorded(f, randn(1))
    assert {op.max for op in got.ops if op.op == "ones"} == {1.0}


# ---------------------------------------------------------------- numbers


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int8]
values = st.lists(
    st.one_of(st.floats(-100, 100, width=16), st.sampled_from([math.nan, math.inf, -math.inf])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from(DTYPES), st.booleans())
def test_numbers_are_those_of_torch(numbers, dtype, large):
    """min, max, mean, nan and inf agree with torch's own, for small outputs and large ones."""
    if not dtype.is_floating_point:
        numbers = [int(n) if math.isfinite(n) else 3 for n in numbers]
    x = torch.tensor(numbers, dtype=dtype).repeat(2000 if large else 1)
    (op,) = recorded(lambda x: x.clone(), x).ops
    wide = x.double()
    assert op.nan == bool(wide.isnan().any())
    if op.nan:
        assert math.isnan(op.min)
        assert math.isnan(op.max)
        return
    assert (op.min, op.max) == (wide.min().item(), wide.max().item())
    assert op.inf == bool(wide.isinf().any())
    assert op.mean == pytest.approx(wide.mean().item(), rel=1e-3, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize("count", [3, 5000])
def test_numbers_of_booleans_are_shares(count):
    """Of a mask: 0, 1 and the share of True."""
    x = torch.arange(count) % 3 == 0
    (op,) = recorded(lambda x: ~x, x).ops
    assert (op.dtype, op.min, op.max) == ("bool", 0.0, 1.0)
    assert op.mean == pytest.approx((~x).double().mean().item())


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[:0].clone(),
        lambda x: x.to("meta"),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: torch.complex(x, x),
        lambda x: x.to_sparse() * 2,
    ],
    ids=["empty", "meta", "float8", "complex", "sparse"],
)
def test_what_has_no_range_has_none(make):
    """Empty, meta, float8, complex and sparse outputs have no numbers and raise no flag."""
    op = recorded(make, randn(2, 3)).ops[-1]
    assert (op.min, op.max, op.mean, op.nan, op.inf) == (None, None, None, False, False)


def test_a_nan_is_followed_through_complex_numbers():
    """Rotary code that multiplies complex numbers shows the NaN where it came in."""

    def f(x):
        turned = torch.view_as_complex(x) * complex(math.nan, 0)
        return torch.view_as_real(turned) + 1

    got = recorded(f, randn(3, 2))
    assert [(op.op, op.nan) for op in got.ops] == [
        ("view_as_complex", False),
        ("mul", True),
        ("view_as_real", True),
        ("add", True),
    ]


def test_a_view_with_another_meaning_has_numbers_of_its_own():
    """The same bits read as integers, or one element repeated, are not the same numbers."""
    x = torch.tensor([1.0, 2.0, 3.0])
    got = recorded(lambda x: ((x * 1).view(torch.int32), (x * 1).as_strided((3,), (0,))), x)
    assert got.ops[1].max == x.view(torch.int32).max().item()
    assert (got.ops[3].min, got.ops[3].max) == (1.0, 1.0)


def test_integers_are_not_rounded_in_their_mean():
    """The mean of large indices is computed in a wide type."""
    x = torch.full((5000,), 2**40 + 1)
    (op,) = recorded(lambda x: x + 0, x).ops
    assert op.mean == 2**40 + 1

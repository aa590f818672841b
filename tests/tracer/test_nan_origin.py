"""Where broken values come from: NaN, infinities, masks that come too late, and quiet facts."""

import math

import pytest
import torch
from health_modules import CAUSAL, capture_of, message, told
from modules import randn
from torch import nn
from torch.nn import functional as F

X = randn(2, 5, 8)
LOWEST = torch.finfo(torch.float32).min


def weights(x):
    return (x @ x.mT / 8**0.5).softmax(-1)


# ---------------------------------------------------------------- who held it before


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_weight_with_a_broken_value_is_named(bad):
    """By its dotted name: the operation that met it is not at fault."""
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    net[1].weight.data[0, 0] = bad
    trace = capture_of(net, X)
    assert "linear took it from 1.weight" in trace.findings[0].message
    assert trace.findings[0].index == 1


def test_a_buffer_and_an_input_are_named():
    """What is no parameter can hold a NaN as well."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.full((8,), math.nan))

        def forward(self, x):
            return x + self.table

    assert "add took it from table" in message(Net(), X, rule="nan-origin")
    bad = X.clone()
    bad[0, 0, 0] = math.nan
    assert "mul took it from x0" in message(lambda x: x * 2, bad, rule="nan-origin")


def test_an_infinite_weight_that_makes_nan_is_named():
    """inf * 0 in the same operation: the infinity never stood in a row of its own."""
    net = nn.Linear(8, 8, bias=False)
    net.weight.data[0, 0] = math.inf
    said = message(net, torch.zeros(1, 8), rule="nan-origin")
    assert said == "first NaN: linear took an infinity from weight"


def test_zero_over_zero_says_what_guards_it():
    """A division that made NaN of finite numbers."""
    said = message(lambda x: (x * 0) / (x * 0), X, rule="nan-origin")
    assert said.endswith("0 / 0 is NaN, so guard the divisor with clamp(min=...) or an epsilon")


def test_a_root_of_a_negative_number():
    """The domain of the operation is named."""
    assert message(lambda x: x.sqrt(), X, rule="nan-origin").endswith("of a negative number is NaN")


# ---------------------------------------------------------------- masks


def test_two_masks_of_the_lowest_number_add_up_to_minus_infinity():
    """The line of the sum is named beside the rows that lost every key."""

    def f(x):
        mask = torch.zeros(5, 5)
        mask[2] = LOWEST
        both = mask + mask
        return (x @ x.mT + both).softmax(-1) @ x

    said = message(f, X, rule="nan-origin")
    assert "2 rows have every key masked, the first is row [0, 2]" in said
    assert "added two masks of the lowest float32, and their sum is -inf" in said


def test_two_masks_that_leave_a_key_raise_nothing():
    """Their sum may well be -inf where both forbid: that is legal as long as a key is left."""
    mask = torch.zeros(5, 5).masked_fill(CAUSAL, LOWEST)
    assert told(lambda x: (x @ x.mT + (mask + mask)).softmax(-1) @ x, X) == []


@pytest.mark.parametrize(
    "late",
    [
        lambda w: w * ~CAUSAL,
        lambda w: w.masked_fill(CAUSAL, 0.0),
        lambda w: torch.where(CAUSAL, torch.zeros(()), w),
        lambda w: w * (~CAUSAL).float(),
    ],
)
def test_a_mask_after_the_softmax_is_found(late):
    """Rows that lost weight and do not sum to 1 any more, with the least sum."""
    said = message(lambda x: late(weights(x)) @ x, X, rule="mask-after-softmax")
    assert "takes keys away after the softmax: 8 rows of (2, 5, 5) no longer sum to 1" in said


@pytest.mark.parametrize(
    "right",
    [
        lambda x: F.normalize(weights(x) * ~CAUSAL, p=1.0, dim=-1) @ x,
        lambda x: (w := weights(x) * ~CAUSAL) / w.sum(-1, keepdim=True) @ x,
        lambda x: (x @ x.mT).masked_fill(CAUSAL, -1e9).softmax(-1) * ~CAUSAL @ x,
        lambda x: weights(x) * torch.tensor([[[1.0]], [[0.0]]]) @ x,  # a whole head is cut
        lambda x: weights(x) * x.mean(-1, keepdim=True).sigmoid() @ x,  # a gate
        lambda x: (weights(x) / 2) @ x,
        lambda x: nn.Linear(8, 5)(x).softmax(-1) * ~CAUSAL @ x,  # a router, no attention
    ],
)
def test_weights_that_lose_nothing_by_accident_raise_nothing(right):
    """A new sum, masks of what has no weight anyway, heads cut off whole, gates, routers."""
    assert told(right, X) == []


# ---------------------------------------------------------------- half precision


def test_an_overflow_in_half_precision_is_measured():
    """What it would have been, where the dtype ends, and how large the operands were."""
    q = torch.full((1, 2, 128), 32.0)
    said = message(lambda q: q @ q.mT, q, dtype="float16", rule="infinity-origin")
    assert said.startswith(
        "first infinity: matmul made 131072 where float16 ends at 65504; "
        "its operands lie within ±32 and ±32."
    )


def test_an_overflow_to_minus_infinity_is_one_too():
    """A product has no mask in it: -inf there is an overflow."""
    q = torch.full((1, 2, 128), 32.0)
    assert told(lambda q: q @ -q.mT, q, dtype="float16")[0] == ("infinity-origin", "warning")


def test_the_same_numbers_fit_into_bfloat16():
    """Its range is that of float32."""
    q = torch.full((1, 2, 128), 32.0)
    assert told(lambda q: q @ q.mT, q, dtype="bfloat16") == []


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_every_floating_point_tensor_is_cast(dtype):
    """Weights and inputs; the rows say so, and nothing is found on a right layer."""
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    trace = capture_of(net, X, dtype=dtype)
    assert {op.dtype for op in trace.ops} == {dtype}
    assert (trace.findings, trace.crash) == ((), None)


def test_a_missing_kernel_is_not_the_modules_fault():
    """Said plainly, with the operation and the dtype."""
    crash = capture_of(lambda x: torch.cdist(x, x), X, dtype="float16").crash
    assert crash.explanation.startswith("PyTorch has no cdist for float16 on this device")


# ---------------------------------------------------------------- quiet facts


def test_a_softmax_over_very_large_scores_is_noted():
    """One key takes all: harmless for the values, not for learning."""
    found = capture_of(lambda x: (x @ x.mT).softmax(-1) @ x, X * 40).findings
    assert [(f.rule, f.severity) for f in found] == [("softmax-saturated", "note")]


def test_an_activation_that_is_constant_is_noted():
    """A ReLU of which nothing is left, though its input varies."""
    net = nn.Linear(8, 8)
    net.bias.data -= 100
    assert told(lambda x: net(x).relu(), X) == [
        ("constant-output", "note"),
        ("output-constant", "note"),
    ]


def test_denormal_values_are_noted():
    """A whole tensor below the smallest number that is held in full."""
    assert told(lambda x: x @ (x.mT * 1e-40), X) == [("denormal-values", "note")]


def test_a_module_that_remembers_is_not_measured_at_the_wrong_row():
    """The second run took another path: what it found belongs to no row of the first."""
    calls = []

    def f(x):
        calls.append(1)
        return x / 0 * 0 if len(calls) == 1 else x + 1

    trace = capture_of(f, X)
    assert [op.op for op in trace.ops] == ["div", "mul"]
    assert len(calls) == 2

"""The smallest change with which an operation that raised would have run: tried, not guessed."""

import pytest
import torch
from modules import module, traced
from torch import nn
from torch.nn import functional as F

from attnlab.tracer.crash.suggest import LARGE, ReplayedCall, suggest_fixes, zeros_as_laid_out
from attnlab.tracer.nested_tensors import map_tensors

LAYER = "self.proj = nn.Linear(width, width)"
HEADS = "q = x.unflatten(-1, (4, 2)).transpose(1, 2)\nk, v = q[:, :2], q[:, :2]\n"
SCORES = "q = x.unflatten(-1, (2, 4)).transpose(1, 2)\nscores = q @ q.mT\n"


def said(forward, init=LAYER):
    """What is said to run, at B=2, S=4, D=8."""
    crash = traced(module(forward, init)).crash
    assert crash is not None, "it ran"
    return crash.explanation.partition("It runs with ")[2].partition(". The ")[0].rstrip(".")


@pytest.mark.parametrize(
    ("forward", "change"),
    [
        ("q, k = x, x\nreturn q @ k", "k.transpose(-2, -1) or with q.transpose(-2, -1)"),
        ("return torch.matmul(x, x[:1])", "x[:1].transpose(-2, -1)"),
        (HEADS + "return q @ k.mT", "k.mT.repeat_interleave(2, dim=1)"),
        (HEADS + "return F.scaled_dot_product_attention(q, k, v)", "enable_gqa=True"),
        ("y = x.mT\nreturn y.view(2, -1)", "y.reshape(...) in place of view"),
        ("q = x.unflatten(-1, (2, 4))\nreturn self.proj(q)", "q.flatten(-2)"),
        (
            "q = x.unflatten(-1, (2, 4)).transpose(1, 2)\nreturn self.proj(q)",
            "q.transpose(1, 2).flatten(-2)",
        ),
        ("return torch.cat([x, x[:, :2]], -1)", "dim=1"),
        ("return x + x[0, :, 0]", "x[0, :, 0][:, None]"),
        ("pe = torch.ones(1, 9, 8)\nreturn x + pe", "pe[:, :4]"),
        ("return x.masked_fill(torch.ones(4, 8), 0)", "torch.ones(4, 8).bool()"),
        ("return x.double() @ x[0].mT", "x[0].mT.to(x.double().dtype)"),
        ("return self.proj(x.double())", "x.double().float()"),
        (
            SCORES + "return scores.masked_fill(x[:, :, 0] > 0, 0)",
            "(x[:, :, 0] > 0)[:, None, None]",
        ),
        (
            "m = torch.ones(2, 3, 4) > 0\nreturn x.unflatten(-1, (4, 2)).mT[:, :3] * m",
            "m[:, :, None]",
        ),
    ],
)
def test_the_smallest_change_is_named(forward, change):
    """In the names of the source, and first of all."""
    assert said(forward).startswith(change)


@pytest.mark.parametrize(
    "forward",
    [
        "k = torch.cat([x, x], 1)\nw = (x @ k.mT).softmax(-1)\nreturn w @ x",  # over the queries
        HEADS + "return (q @ q.mT @ q).permute(0, 1, 3, 2).view(2, 4, 8)",  # heads first
        "return F.conv1d(x, torch.ones(8, 5, 3))",  # another layer, or another input
        # keys of the cache joined to those of now as heads
        HEADS + "k = torch.cat([q, q], 1)\nreturn q @ k.mT",
        "return x + x[0, 0, :4]",  # features, as many as there are positions
    ],
)
def test_what_only_silences_a_crash_is_no_advice(forward):
    """It runs, and axes meet that are not the same: the bug would stay, without a message."""
    assert said(forward) == ""


def test_reshape_is_suggested_where_it_keeps_axes_whole():
    """It runs with any sizes, also where it scrambles heads: those change places first."""
    split, merge = "q = x.unflatten(-1, (2, 4)).transpose(1, 2)\n", "return q.view(2, 4, 8)"
    assert said(split + merge).startswith("q.transpose(1, 2).reshape(...) in place of view")
    back = "q = q.contiguous().transpose(1, 2)\n"
    assert said(split + back + merge).startswith("q.reshape(...) in place of view")
    alike = "q = x.unflatten(-1, (4, 2)).transpose(1, 2)\n"  # as many heads as positions
    for code, change in (
        (alike + merge, "q.transpose(1, 2)"),
        ("y = x.mT\nreturn y.view(2, 4, 8)", "y.transpose(-2, -1)"),
    ):
        assert said(code).startswith(f"{change}. That operand")


def test_a_layer_with_its_sizes_swapped():
    """nn.Linear(in, out), the other way round."""
    forward, init = "return self.up(x)", "self.up = nn.Linear(16, width)"
    assert said(forward, init).startswith("nn.Linear(8, 16) in place of nn.Linear(16, 8)")


@pytest.mark.parametrize(
    "forward",
    [
        "return x * x[:, :3]",
        "return x.view(2, 5, -1)",
        "return self.proj(torch.cat([x, x], -1))",
        "return torch.einsum('bsd,btd->bst', x, x[:, :, :3])",
        "return x[torch.tensor([9])]",
        "return F.layer_norm(x, (5,))",
        "raise ValueError('no operation')",
    ],
)
def test_where_no_small_change_helps_nothing_is_said(forward):
    """No suggestion is better than one that runs and means nothing."""
    assert said(forward) == ""


def test_every_suggestion_runs():
    """Made by hand from what is said, on real tensors."""
    q, k, mask = torch.ones(2, 3, 5, 4), torch.ones(2, 3, 7, 4), torch.ones(2, 5, 7) > 2
    assert (q @ k.transpose(-2, -1)).masked_fill(mask[:, None], 0).shape == (2, 3, 5, 7)
    asked = ReplayedCall(torch.Tensor.masked_fill, (torch.ones(2, 3, 5, 7), mask, 0), {})
    (fit,) = suggest_fixes(asked, "masked_fill", ["scores", "mask"])
    assert (fit.text, fit.operand, fit.axes) == ("mask[:, None]", 1, (0, -1, 1, 2))
    fit = suggest_fixes(ReplayedCall(torch.matmul, (q, k), {}), "matmul", ["q", "k"])[0]
    assert (fit.text, fit.axes) == ("k.transpose(-2, -1)", (0, 1, 3, 2))


def test_nothing_is_larger_than_it_was():
    """A mask that would blow the scores up is no remedy."""
    asked = ReplayedCall(torch.add, (torch.ones(2, 5, 4), torch.ones(3, 4)), {})
    assert suggest_fixes(asked, "add", ["x", "y"]) == ()


def test_operands_without_names_are_told_by_their_kind():
    """A long expression, or a call that cannot be found in the source."""
    asked = ReplayedCall(torch.matmul, (torch.ones(2, 3), torch.ones(2, 3)), {})
    assert suggest_fixes(asked, "matmul", [])[0].text == "the operand.transpose(-2, -1)"


def test_a_call_that_runs_on_zeros_has_no_remedy():
    """Its values were at fault: an index beyond a table."""
    table, ids = torch.ones(2, 3), torch.zeros(4, dtype=torch.int64)
    assert suggest_fixes(ReplayedCall(F.embedding, (ids, table), {}), "embedding", []) == ()


def test_two_dtypes_without_data():
    """Large tensors stand without data, where some operations mind no dtype."""
    big = torch.empty(2, LARGE, device="meta")
    asked = ReplayedCall(F.linear, (big.double(), torch.empty(3, LARGE, device="meta")), {})
    assert [fit.text for fit in suggest_fixes(asked, "linear", ["x"])] == ["x.to(torch.float32)"]


def test_what_is_kept_of_a_call_has_its_shapes_and_none_of_its_values():
    """Layouts count: a view fails for its strides. Large tensors stand without data."""
    x = torch.full((2, 3), 7.0)
    kept = map_tensors(zeros_as_laid_out, (x.mT, [x.expand(4, 2, 3)], 3, "ij"))
    assert (kept[0].shape, kept[0].stride(), kept[0].sum()) == ((3, 2), (1, 3), 0)
    assert kept[1][0].stride() == (0, 3, 1)
    assert kept[2:] == (3, "ij")
    assert zeros_as_laid_out(torch.empty(LARGE + 1, device="meta")).is_meta
    assert zeros_as_laid_out(nn.Parameter(torch.ones(0, 3))).shape == (0, 3)

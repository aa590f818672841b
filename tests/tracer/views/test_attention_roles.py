"""Attention by its roles, in the styles in which people write it."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from shots import CAUSAL, Plain, capture_of, shot, x
from torch import nn

from attnlab.records import TraceOptions
from attnlab.tracer.capture import capture
from attnlab.tracer.views import attention
from attnlab.tracer.views.attention import NONE_FOUND

LOOK = TraceOptions(attention=True)


def view(what, **given):
    return capture_of(what, options=LOOK, **given)


def only(got):
    (found,) = got.attention
    return found


def roles(got):
    """The operation at each role."""
    a = only(got)
    rows = (a.scores, a.mask, a.weights, a.context)
    return tuple(None if i is None else got.ops[i].op for i in rows)


def test_plain_attention():
    """Scores before the mask, the mask, the softmax, the product with the values."""
    got = view(Plain(), x=x(), mask=CAUSAL)
    assert roles(got) == ("div", "masked_fill", "softmax", "matmul")
    a = only(got)
    assert (a.coverage, a.causal, a.fused, len(a.heads)) == (0.625, True, False, 2)
    assert got.ops[a.weights].line == a.line


def test_the_maps_are_those_of_the_first_sequence():
    """Each head's map is what the softmax made for it."""
    got = view(Plain(), x=x())
    net, q = Plain(), x()
    a, b, _ = (net.split(t) for t in net.proj(q).chunk(3, -1))
    truth = (a @ b.mT / 2).softmax(-1)[0].detach()
    for head, matrix in zip(only(got).heads, truth, strict=True):
        assert torch.allclose(torch.tensor(head.weights.rows), matrix, atol=1e-5)


def by_hand(x):
    scores = x @ x.mT
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (powers / powers.sum(-1, keepdim=True)) @ x


def with_einsum(x):
    weights = torch.einsum("bqd,bkd->bqk", x, x).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, x)


def with_sum(x):
    weights = (x.unsqueeze(2) * x.unsqueeze(1)).sum(-1).softmax(-1)
    return (weights.unsqueeze(-1) * x.unsqueeze(1)).sum(2)


def with_bmm(x):
    return torch.bmm(F.dropout(torch.bmm(x, x.mT).softmax(-1), 0.1, training=False), x)


def in_half(x):
    scores = (x.bfloat16() @ x.bfloat16().mT).float()
    return scores.softmax(-1).type_as(x.bfloat16()) @ x.bfloat16()


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (by_hand, ("matmul", None, "div", "matmul")),
        (with_einsum, ("einsum", None, "softmax", "einsum")),
        (with_sum, ("sum", None, "softmax", "sum")),
        (with_bmm, ("bmm", None, "dropout", "bmm")),
        (in_half, ("float", None, "type_as", "matmul")),
    ],
)
def test_styles_without_a_mask(style, expected):
    """The roles do not depend on how the products are spelled."""
    got = view(style, x=x())
    assert roles(got) == expected
    assert (only(got).coverage, only(got).causal) == (1.0, False)
    assert len(only(got).heads) == 1


INF = float("-inf")


def put(scores):
    scores[:, CAUSAL] = INF
    return scores


@pytest.mark.parametrize(
    ("mask", "op"),
    [
        (lambda s: s.masked_fill(CAUSAL, INF), "masked_fill"),
        (lambda s: s.masked_fill_(CAUSAL, -1e9), "masked_fill_"),
        (lambda s: torch.where(CAUSAL, torch.tensor(-1e4), s), "where"),
        (lambda s: s + torch.zeros(4, 4).masked_fill(CAUSAL, INF), "add"),
        (lambda s: torch.full((4, 4), -1e9).triu(1) + s, "add"),
        (put, "setitem"),
    ],
)
def test_styles_of_masks(mask, op):
    """Filled, chosen, added or assigned, with -inf or a large negative number."""
    got = view(lambda x: mask(x @ x.mT / 2).softmax(-1) @ x, x=x())
    assert roles(got) == ("div", op, "softmax", "matmul")
    assert (only(got).coverage, only(got).causal) == (0.625, True)


def test_a_bias_is_no_mask():
    """ALiBi adds numbers to the scores that bar nothing."""
    slopes = -torch.arange(4.0)
    got = view(lambda x: (x @ x.mT + slopes).softmax(-1) @ x, x=x())
    assert roles(got) == ("add", None, "softmax", "matmul")


def test_of_two_masks_the_scores_are_before_the_first():
    """Causal and padding masks, one after the other."""
    pad = torch.tensor([False, False, False, True])

    def f(x):
        scores = (x @ x.mT).masked_fill(CAUSAL, INF)
        return scores.masked_fill(pad, INF).softmax(-1) @ x

    got = view(f, x=x())
    assert roles(got) == ("matmul", "masked_fill", "softmax", "matmul")
    assert only(got).scores == only(got).mask - 2
    assert only(got).coverage == 9 / 16


# ---------------------------------------------------------------- fused


def test_the_inside_of_a_fused_kernel_is_computed_beside_it():
    """One row is all that there is, so scores and weights have none; the maps are there."""
    got = view(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), x=x(2, 3, 4, 8))
    assert roles(got) == (None, None, None, "scaled_dot_product_attention")
    a = only(got)
    assert (a.fused, a.causal, a.coverage, len(a.heads)) == (True, True, 0.625, 3)
    assert "recomputed" not in a.message


def test_multihead_attention_of_torch():
    """Both ways in which it computes: with weights, and through the fused kernel."""
    net = nn.MultiheadAttention(8, 2, batch_first=True)
    assert roles(view(net, q=x(), k=x(), v=x())) == ("bmm", None, "softmax", "bmm")
    got = capture_of(lambda q: net(q, q, q, need_weights=False), root=net, options=LOOK, q=x())
    assert (only(got).fused, len(only(got).heads)) == (True, 2)


def test_heads_that_are_merged_with_the_batch():
    """nn.MultiheadAttention has (B*H, S, S) inside, and with batch_first=False no B in front."""
    net = nn.MultiheadAttention(8, 2)
    assert len(only(view(net, q=x(5, 3, 8), k=x(5, 3, 8), v=x(5, 3, 8))).heads) == 2


def test_keys_before_the_last_axis():
    """Weights laid out as (B, Sq, Sk, H) are shown as queries by keys all the same."""

    def f(x):
        q = x.unflatten(-1, (2, 4))
        weights = torch.einsum("bqhd,bkhd->bqkh", q, q).softmax(2)
        return torch.einsum("bqkh,bkhd->bqhd", weights, q)

    (first, second) = only(view(f, x=x())).heads
    for head in (first, second):
        assert [sum(row) for row in head.weights.rows] == pytest.approx([1] * 4, abs=1e-4)


def test_a_softmax_over_the_queries_is_told():
    """The bug of the wrong axis shows in the sums of the weights."""
    got = view(lambda x: (x @ x.mT).softmax(-2) @ x, x=x())
    assert "those of each key over the queries do" in only(got).message


# ---------------------------------------------------------------- what is none


def test_a_classifier_is_no_attention():
    """A softmax that meets no values is no attention, and the note says what was looked for."""
    got = view(lambda x: x.softmax(-1).argmax(-1), x=x())
    assert (got.attention, got.notes) == ((), (NONE_FOUND,))


def test_a_fully_masked_row_is_named():
    """The query that may see nothing, and what it makes."""
    barred = CAUSAL.index_fill(0, torch.tensor(1), True)
    got = view(Plain(), x=x(), mask=barred)
    assert only(got).message == (
        "query 1 may attend to nothing: the mask bars every key, which makes NaN of the weights"
    )


def test_every_layer_has_its_own(monkeypatch):
    """A stack of blocks: one view each, with the module's name; not more than a page can hold."""

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Plain() for _ in range(3)])

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(x)
            return x

    assert [a.module for a in view(Stack(), x=x()).attention] == [f"layers.{i}" for i in range(3)]
    monkeypatch.setattr(attention, "MOST", 2)
    got = view(Stack(), x=x())
    assert (len(got.attention), got.notes) == (
        2,
        ("there are 3 attentions; the first 2 are described",),
    )


def test_a_crash_before_the_attention():
    """What did not run is not described."""
    got = view(lambda x: x.softmax(-1) @ x, x=x(2, 3))
    assert (got.crash.op, got.attention) == ("matmul", ())


def test_the_entropy_of_a_copying_head_is_small():
    """Weights of one each: no nats."""
    got = view(lambda x: (x @ x.mT * 100).softmax(-1) @ x, x=torch.eye(4)[None])
    assert only(got).heads[0].entropy == pytest.approx(0.0, abs=1e-6)
    assert math.isclose(only(got).heads[0].largest, 1.0)


def test_cross_attention_looks_nowhere_ahead():
    """Positions of another input are no later ones, even where there are as many of them."""
    cross = lambda x, y: (x @ y.mT).softmax(-1) @ y  # noqa: E731
    sizes = {"B": 2, "S": 4, "T": 4, "D": 8}

    def causal(of_y):
        axes = {"x": ("B", "S", "D"), "y": ("B", of_y, "D")}
        made = shot(cross, options=LOOK, x=x(), y=x())
        return only(capture(replace(made, axes=axes, sizes=sizes))).causal

    assert (causal("T"), causal("S")) == (None, False)


def test_the_sums_of_a_query_are_told():
    """A mask after the softmax leaves less than 1."""
    kept = lambda x: ((x @ x.mT).softmax(-1) * 0.5) @ x  # noqa: E731
    low, high = only(view(kept, x=x())).sums
    assert (round(low, 3), round(high, 3)) == (0.5, 0.5)

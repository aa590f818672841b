"""What becomes of axes, operation by operation."""

import pytest
import torch
from followed import followed, last, told, true
from torch import nn

import attnlab
from attnlab.tracer.axes.atoms import root
from attnlab.tracer.axes.engine import Flow

SPLIT = "x.view(B, S, H, hd)"
RIGHT = {
    # views
    "heads split and merged": (
        f"{SPLIT}.transpose(1, 2).transpose(1, 2).reshape(B, S, D)",
        "B S D",
    ),
    "heads split by unflatten": ("x.unflatten(-1, (H, -1))", "B S H hd"),
    "heads and batch merged": (f"{SPLIT}.transpose(1, 2).reshape(B * H, S, hd)", "B*H S hd"),
    "and parted again": ("q.flatten(0, 1).view(B, H, S, hd)", "B H S hd"),
    "flattened tokens": ("x.view(-1, D)", "B*S D"),
    "an axis of one": ("x.unsqueeze(1)", "B 1 S D"),
    "and gone again": ("x[:, None].squeeze(1)", "B S D"),
    "permute": ("q.permute(0, 2, 1, 3)", "B S H hd"),
    "a list to permute": ("torch.permute(q, [3, 2, 1, 0])", "hd S H B"),
    "movedim": ("q.movedim(1, -1)", "B S hd H"),
    "movedim of two": ("q.movedim((0, 1), (2, 3))", "S hd B H"),
    "mT": ("q.mT", "B H hd S"),
    "swapaxes": ("q.swapaxes(1, 2)", "B S H hd"),
    "expand": ("one.expand(B, S, D)", "B S D"),
    "chunk": ("W.qkv(x).chunk(3, -1)[0]", "B S D"),
    "split": ("W.qkv(x).split(D, dim=-1)[2]", "B S D"),
    "unbind": ("W.qkv(x).view(B, S, 3, H, hd).unbind(2)[1]", "B S H hd"),
    "qkv by permute": ("W.qkv(x).view(B, S, 3, H, hd).permute(2, 0, 3, 1, 4)", "3 B H S hd"),
    "narrow": ("x.narrow(1, 0, 10)", "B S-1 D"),
    "select": ("x.select(1, 0)", "B D"),
    "diagonal": ("(q @ k.mT).diagonal(dim1=2, dim2=3)", "B H S"),
    "complex pairs": (
        "torch.view_as_complex(x.view(B, S, 21, 2)) * 1j",
        "B S D/2",
    ),
    "windows": ("picture.unfold(2, 4, 4)", "B C h/4 w h/2"),
    # layers
    "linear": ("W.qkv(x)", "B S 3*D"),
    "a layer that no symbol fits": ("W.up(x)", "B S up"),
    "embedding": ("W.tokens(ids)", "B S D"),
    "tied head": ("x @ W.tokens.weight.T", "B S V"),
    "one_hot": ("F.one_hot(ids, 97)", "B S V"),
    "patches": ("F.conv2d(picture, torch.randn(42, 5, 4, 4), stride=4)", "B D h/4 w/4"),
    "pooled picture": ("F.avg_pool2d(picture, 2)", "B C h/2 w/2"),
    # products
    "scores": ("q @ k.transpose(-2, -1)", "B H S S'"),
    "context": ("(q @ k.mT).softmax(-1) @ v", "B H S hd"),
    "scores by einsum": ("torch.einsum('bhid,bhjd->bhij', q, k)", "B H S S'"),
    "einsum with dots": ("torch.einsum('...id,...jd->...ij', q, k)", "B H S S'"),
    "einsum of two sequences": ("torch.einsum('bsd,btd->bst', x, y)", "B S T"),
    "cross scores": ("x @ y.mT", "B S T"),
    "bmm": ("torch.bmm(x, y.transpose(1, 2))", "B S T"),
    "baddbmm": ("torch.baddbmm(torch.zeros(1, 1, 1), x, x.mT)", "B S S'"),
    "fused": ("F.scaled_dot_product_attention(q, k, v)", "B H S hd"),
    "fused, grouped": ("F.scaled_dot_product_attention(q, kv, kv, enable_gqa=True)", "B H S hd"),
    "tensordot": ("torch.tensordot(x, y, ([2], [2]))", "B S B' T"),
    "distances": ("torch.cdist(x, y)", "B S T"),
    "outer product": ("torch.outer(torch.arange(S), W.slopes)[:, 0] + x[0, :, 0]", "S"),
    # joins
    "halves turned": ("torch.cat([-q[..., 4:], q[..., :4]], -1)", "B H S hd"),
    "a cache": ("torch.cat([q, k[:, :, :5]], 2)", "B H S+S[:5] hd"),
    "an empty cache": (
        "torch.cat([q[:, :, :0], k], 2)",
        "B H S hd",
    ),
    "stack": ("torch.stack([x, x], 1)", "B 2 S D"),
    "heads repeated": ("kv.repeat_interleave(3, dim=1)", "B H S hd"),
    "heads expanded": ("kv[:, :, None].expand(B, 2, 3, S, hd).reshape(B, H, S, hd)", "B H S hd"),
    "padded": ("F.pad(x, (0, 0, 1, 0))", "B S+1 D"),
    # indexing
    "a new axis": ("mask[:, None]", "B 1 S S'"),
    "dots": ("q[..., 0]", "B H S"),
    "every second": ("q[..., ::2]", "B H S hd-3"),
    "a table by position": ("W.table[torch.arange(S)] + x", "B S D"),
    "a slice of a table": ("W.table[:S] + x", "B S D"),
    "entries by a boolean mask": ("x[pad][0] * 1", "D"),
    "rows by batch": ("mask[torch.arange(B)[:, None], torch.arange(S)]", "B S S'"),
    "gather": ("x.gather(1, ids.clamp(max=10)[..., None].expand(B, S, D))", "B S D"),
    "index_select": ("x.index_select(1, torch.tensor([0, 1]))", "B 2 D"),
    "written into": ("z = torch.zeros(B, S, D); z[:, :, :] = x; z + 0", "B S D"),
    # elementwise
    "residual": ("x + W.qkv(x).chunk(3, -1)[0]", "B S D"),
    "a bias by head": ("q @ k.mT + W.slopes[:, None, None]", "B H S S'"),
    "masked": ("(q @ k.mT).masked_fill(mask[:, None], -1e9)", "B H S S'"),
    "where": ("torch.where(mask[:, None], -1e9, q @ k.mT)", "B H S S'"),
    "a causal mask": (
        "(q @ k.mT).masked_fill(torch.ones(S, S).triu(1).bool(), -1e9)",
        "B H S S'",
    ),
    "in place": ("(q @ k.mT).add_(1).softmax(-1)", "B H S S'"),
    # reductions
    "mean": ("x.mean(1)", "B D"),
    "mean, kept": ("x.mean(-1, keepdim=True)", "B S 1"),
    "largest": ("x.max(dim=-1).values", "B S"),
    "all": ("x.sum()", ""),
    "two axes": ("q.sum((1, 3))", "B S"),
    "topk": ("x.topk(5, dim=-1).values", "B S 5"),
    # factories
    "distances by arange": (
        "d = torch.arange(S)[None] - torch.arange(S)[:, None]; q @ k.mT + d",
        "B H S S'",
    ),
    "meshgrid": ("torch.meshgrid(torch.arange(S), torch.arange(13), indexing='ij')[0]", "S T"),
    "zeros_like": ("torch.zeros_like(q)", "B H S hd"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_axes_of_an_operation(case):
    """Each operation names its result by where the axes came from, and raises nothing."""
    code, axes = RIGHT[case]
    raw = followed(code)
    assert last(raw) == axes
    assert told(raw) == []
    assert true(raw)


def test_an_unknown_operation_makes_no_name():
    """What nobody knows may have moved anything: names come from unique sizes alone."""
    raw = followed("z = torch.ones(3, 3).expand(3, 3)\ntorch.linalg.matrix_exp(z)")
    assert raw.ops[-1].op in ("matrix_exp", "linalg_matrix_exp")
    assert set(raw.ops[-1].axes) <= {"B", "B'", "3"}


def test_names_learnt_later_stand_in_earlier_rows():
    """A mask made of ones is named once it has met the scores."""
    raw = followed("m = torch.ones(S, S).tril()\n(q @ k.mT) + m")
    assert raw.ops[0].axes == ("S", "S'")


def test_lists_of_letters_are_an_equation():
    """The other form that einsum takes is named as well."""
    raw = followed("torch.einsum(x, [0, 1, 2], [0, 1])")
    assert raw.ops[-1].axes == ("B", "S")


def test_a_second_copy_of_an_axis_is_known_by_its_mark():
    """Names that a trace gave are taken back: S' is another S, and not a feature of its own."""
    flow = Flow({"B": 3, "S": 7}, {})
    flow.add_input((3, 7, 7), ("B", "S", "S'"))
    _, one, other = flow.inputs[0].axes
    assert root(other[0]) is one[0]
    assert flow.names.axis(other) == "S'"


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_states_of_recurrent_layers_have_the_batch(kind, first):
    """One of four entries is B before, in and behind them, and so in the first states."""
    layer = kind(6, 8, num_layers=2, batch_first=first)
    shape, dims = ((4, 7, 6), "B S C") if first else ((7, 4, 6), "S B C")
    trace = attnlab.trace(layer, torch.randn(shape), dims=f"input: {dims}")
    states = [op.axes for op in trace.ops if op.op in ("lstm", "gru", "rnn_tanh")]
    assert states[0][:2] == tuple(dims.split()[:2])
    assert {axes[1] for axes in states[1:]} == {"B"}

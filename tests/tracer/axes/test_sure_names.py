"""A name that is not sure is not shown: groups of heads, pieces of windows, halves of a head."""

import torch
from torch import nn

import attnlab


class Grouped(nn.Module):
    """Four heads that share two keys, with as many entries in the batch as heads in a group."""

    def __init__(self, how):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(32, 32), nn.Linear(32, 16), nn.Linear(32, 16)
        self.num_heads, self.how = 4, how

    def forward(self, x):
        b, s, _ = x.shape
        q = self.q(x).view(b, s, 4, 8).transpose(1, 2)
        k, v = (layer(x).view(b, s, 2, 8).transpose(1, 2) for layer in (self.k, self.v))
        if self.how == "groups":
            q = q.view(b, 2, 2, s, 8)
            return ((q @ k[:, :, None].mT).softmax(-1) @ v[:, :, None]).flatten(1, 2)
        k, v = (self.copied(t) for t in (k, v))
        return (q @ k.mT).softmax(-1) @ v

    def copied(self, t):
        if self.how == "interleave":
            return t.repeat_interleave(2, 1)
        return t[:, :, None].expand(-1, -1, 2, -1, -1).flatten(1, 2)


def axes_of(module, shape, dims="", **more):
    with torch.no_grad():
        trace = attnlab.trace(module, torch.randn(shape), dims=dims, **more)
    assert [f.message for f in trace.findings if f.severity != "note"] == []
    return [(op.shape, op.axes) for op in trace.ops]


def test_heads_of_keys_are_no_heads_and_no_batch():
    """B, the group and the key heads are all 2: H is 4, and B is the first axis alone."""
    for how in ("interleave", "expand", "groups"):
        for shape, axes in axes_of(Grouped(how), (2, 5, 32), "x: B S D"):
            assert not [n for n, axis in zip(shape, axes, strict=True) if axis == "H" and n != 4]
            assert not any("B" in axis for axis in axes[1:]), axes


class Windows(nn.Module):
    """Windows of two by two, in a picture of four by four."""

    def forward(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
        x = (x @ x.mT).softmax(-1) @ x
        x = x.view(b, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(b, h, w, c)


def test_pieces_of_a_picture_are_no_batch():
    """Every piece is as long as the batch: `B*B*B` says nothing, and is wrong."""
    for dims in ("x: B h w D", "x: B 4 4 D"):
        for _, axes in axes_of(Windows(), (2, 4, 4, 12), dims):
            assert " ".join(axes).count("B") == 1


class TransformerXL(nn.Module):
    """Time first, with a memory and the relative shift of its own."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.r = (nn.Linear(24, n, bias=False) for n in (24, 48, 24))
        self.u, self.num_heads = nn.Parameter(torch.randn(4, 6)), 4

    def forward(self, w, r, mems):
        q, both = self.q(w).unflatten(-1, (4, 6)), torch.cat([mems, w])
        k, v = (t.unflatten(-1, (4, 6)) for t in self.kv(both).chunk(2, -1))
        content = torch.einsum("ibnd,jbnd->ijbn", q + self.u, k)
        place = torch.einsum("ibnd,jnd->ijbn", q + self.u, self.r(r).unflatten(-1, (4, 6)))
        i, j, *rest = place.shape
        zero = torch.zeros(i, 1, *rest)
        place = torch.cat([zero, place], 1).view(j + 1, i, *rest)[1:].view_as(place)
        weights = (content + place).softmax(1)
        return torch.einsum("ijbn,jbnd->ibnd", weights, v).flatten(-2)


def test_the_keys_of_transformer_xl_are_no_width():
    """Keys of memory and text are positions: never hd, though they be as many."""
    inputs = torch.randn(5, 2, 24), torch.randn(6, 24), torch.randn(1, 2, 24)
    with torch.no_grad():
        trace = attnlab.trace(TransformerXL(), *inputs, dims="w: S B D, r: K D, mems: M B D")
    assert [f.message for f in trace.findings if f.severity != "note"] == []
    scores = [op.axes for op in trace.ops if op.op == "softmax"]
    assert scores == [("S", "1+S", "B", "H")]


def test_half_a_head_is_called_so():
    """Halves that are rotated against each other."""

    def rotated(q):
        one, other = q.chunk(2, -1)
        return torch.cat([-other, one], -1) @ q.mT

    with torch.no_grad():
        trace = attnlab.trace(rotated, torch.randn(2, 3, 5, 8), dims="q: B H S hd")
    assert trace.ops[0].axes[-1] == "hd/2"


class Pairs(nn.Module):
    """Queries and keys that are turned by pairs of columns."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.num_heads = nn.Linear(48, 48), nn.Linear(48, 48), 6

    def turned(self, t):
        t = t.view(4, 11, 6, 8).transpose(1, 2)
        angles = torch.arange(11)[:, None] * 100.0 ** -torch.arange(4).repeat_interleave(2)
        swap = torch.stack((-t[..., 1::2], t[..., ::2]), -1).flatten(-2)
        return t * angles.cos() + swap * angles.sin()

    def forward(self, x):
        return (self.turned(self.q(x)) @ self.turned(self.k(x)).mT).softmax(-1)


def test_the_two_of_a_pair_and_the_pairs_are_no_heads_width():
    """hd is 8: an axis of 2 or 4 is hd/4, hd/2 or its number, and no product of two halves."""
    for shape, axes in axes_of(Pairs(), (4, 11, 48), "x: B S D"):
        for n, axis in zip(shape, axes, strict=True):
            assert axis != "hd" or n == 8, axes
            assert "hd/2*" not in axis, axes

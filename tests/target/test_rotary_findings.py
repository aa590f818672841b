"""What the text of a file says of rotary positions."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


PAIRS = """
def table(t, inv):
    freqs = torch.outer(t, inv)
    emb = {table}
    return emb.cos(), emb.sin()

def rotate(x):
    {cut}
    return {joined}
"""
HALVES = ("x1, x2 = x.chunk(2, dim=-1)", "torch.cat((-x2, x1), dim=-1)")
SLICED = ("h = x.shape[-1] // 2", "torch.cat((-x[..., h:], x[..., :h]), dim=-1)")
EVEN = ("x1, x2 = x[..., ::2], x[..., 1::2]", "torch.stack((-x2, x1), dim=-1).flatten(-2)")
UNBOUND = ("x1, x2 = x.unflatten(-1, (-1, 2)).unbind(-1)", "torch.stack([-x2, x1], -1).flatten(-2)")
OTHER = ("x1, x2 = x.unflatten(-1, (2, -1)).unbind(-2)", "torch.cat((-x2, x1), dim=-1)")


@pytest.mark.parametrize(
    ("table", "turned", "lines"),
    [
        ("torch.repeat_interleave(freqs, 2, dim=-1)", HALVES, [4]),
        ("freqs.repeat_interleave(2, -1)", SLICED, [4]),
        ("torch.stack((freqs, freqs), dim=-1).flatten(-2)", OTHER, [4]),
        ("torch.cat((freqs, freqs), dim=-1)", EVEN, [4]),
        ("freqs.repeat(1, 2)", UNBOUND, [4]),
        ("repeat(freqs, 't d -> t (r d)', r=2)", EVEN, [4]),
        ("torch.cat((freqs, freqs), dim=-1)", HALVES, []),
        ("torch.cat([freqs, freqs], -1)", OTHER, []),
        ("freqs.repeat_interleave(2, dim=-1)", EVEN, []),
        ("repeat(freqs, 't d -> t (d r)', r=2)", UNBOUND, []),
        ("freqs", HALVES, []),
    ],
)
def test_tables_and_rotations_pair_the_same_features(table, turned, lines):
    """Neighbours with neighbours, halves with halves, in all ways of writing both."""
    text = PAIRS.format(table=table, cut=turned[0], joined=turned[1])
    assert lines_of(text, "rotary-pairs") == lines


CACHE = """
class Cache:
    def __len__(self):
        return 0 if self.k is None else self.k.size(2)

    def keep(self, k, v):
        self.k = {kept}
        self.seen += k.size(2)

class Attention(nn.Module):
    def forward(self, x):
        q, k, v = self.heads(x)
        start = {start}
        pos = start + torch.arange(x.size(1))
        {turned}
        return attend(q, k, v)
"""
BOTH = "q, k = rope(q, pos), rope(k, pos)"


@pytest.mark.parametrize(
    ("kept", "start", "turned", "found"),
    [
        ("k[:, :, -self.window:]", "len(self.cache)", BOTH, True),
        ("k[:, :, -self.window:].detach()", "self.cache.k.shape[2]", BOTH, True),
        ("k[:, :, -self.window:]", "len(self.cache)", "x = x + self.pos_emb(pos)", True),
        ("k[:, :, -self.window:]", "self.cache.seen", BOTH, False),
        ("k", "len(self.cache)", BOTH, False),
        ("k[:, :, -1:]", "len(self.cache)", BOTH, False),
        ("k[:, :, -self.window:]", "len(self.cache)", "q = rope(q, pos)", False),
        ("k[:, :, -self.window:]", "len(self.cache)", "k = torch.cat([old, k]); " + BOTH, False),
    ],
)
def test_positions_go_on_where_a_cache_is_full(kept, start, turned, found):
    """Unless keys are kept without positions, and turned anew at each step."""
    text = CACHE.format(kept=kept, start=start, turned=turned)
    assert lines_of(text, "positions-of-full-cache") == [13] * found


HALF = """
class Rotary(nn.Module):
    def __init__(self, dim, precision=torch.bfloat16):
        self.register_buffer("inv_freq", {made})
    def forward(self, x, seq_len):
        {body}
"""


@pytest.mark.parametrize(
    ("made", "body", "found"),
    [
        ("f.to(precision)", "t = torch.arange(seq_len).type_as(self.inv_freq)", True),
        ("f.half()", "t = torch.arange(seq_len, dtype=self.inv_freq.dtype)", True),
        ("f.to(torch.bfloat16)", "t = torch.arange(seq_len).to(self.inv_freq)", True),
        ("f", "t = torch.arange(x.size(1)); t = t.half()", False),
        ("f", "t = torch.arange(seq_len); t = t.half()", True),
        ("f", "t = torch.arange(4096, device=x.device).to(torch.float16)", True),
        ("f", "t = torch.arange(256).bfloat16()", False),
        ("f", "t = torch.arange(0, seq_len, 2).half()", False),
        ("f", "t = torch.arange(seq_len).type_as(self.inv_freq)", False),
        ("f.half()", "t = torch.arange(seq_len).float()", False),
        ("f", "t = torch.arange(self.pos_dim // 2).half()", False),
        ("f.half()", "t = torch.arange(heads).type_as(self.inv_freq)", False),
        ("f", "t = torch.arange(seq_len).to(x.dtype)", False),
    ],
)
def test_positions_are_not_counted_in_half_precision(made, body, found):
    """By a buffer, a default or by name; few numbers, and those that are no positions, fit."""
    assert lines_of(HALF.format(made=made, body=body), "dtype-narrowed") == [6] * found

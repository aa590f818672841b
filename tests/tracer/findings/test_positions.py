"""What tables of positions meet: heads, values, one row for all, a token that comes too late."""

import pytest
import torch
from modules import randn
from torch import nn

import attnlab
from attnlab.tracer.findings.positions import POSITION

ROTARY = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.n_heads = nn.Linear(24, 72), 4

    def turn(self, x, axis):
        n, width = x.shape[axis], x.shape[-1] // 2
        angle = torch.arange(n)[:, None] * 100.0 ** -torch.linspace(0, 1, width)
        angle = torch.cat([angle, angle], -1)
        shape = [1, 1, 1, 2 * width]
        shape[axis] = n
        one, other = x.chunk(2, -1)
        turned = torch.cat([-other, one], -1)
        return x * angle.cos().view(shape) + turned * angle.sin().view(shape)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.n_heads, 6).unbind(2)
        q, k = self.turn(q, {axis}), self.turn(k, {axis})
        v = {value}
        w = torch.einsum("bqhc,bkhc->bhqk", q, k) / 6**0.5
        return torch.einsum("bhqk,bkhc->bqhc", w.softmax(-1), v).flatten(2)
"""
TABLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.pos = nn.Parameter(torch.randn(1, {rows}, 8))
        self.first = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        x = self.project(x)
        first = self.first.expand(len(x), -1, -1)
        {body}
        return x
"""
ASIDE = ("unused-parameter", "scale")  # of a text of which only a part is run
LATE = "x = x + self.pos[:, : x.shape[1]]; x = torch.cat([first, x], 1)"
EARLY = "x = torch.cat([first, x], 1); x = x + self.pos[:, : x.shape[1]]"


def look(text, width):
    """The findings about a module of this text, each with the text of its line."""
    space = {"torch": torch, "nn": nn}
    exec(compile(text, "<net>", "exec"), space)
    torch.manual_seed(0)
    net = space["Net"]().eval()
    found = attnlab.trace(net, randn(2, 5, width)).findings
    lines = text.splitlines()
    return [(f.rule, lines[f.line - 1].strip()) for f in found if f.rule not in ASIDE]


@pytest.mark.parametrize(
    ("axis", "value", "expected"),
    [
        (1, "v", []),
        (2, "v", [("position-on-heads", "return x * angle")]),
        (1, "self.turn(v, 1)", [("values-turned", "q, k, v = self")]),
    ],
)
def test_rotary_angles_turn_queries_and_keys_along_positions(axis, value, expected):
    """Along heads, or of values too, they are an accident; the place is where it can be changed."""
    found = look(ROTARY.format(axis=axis, value=value), 24)
    assert [rule for rule, _ in found] == [rule for rule, _ in expected]
    assert all(line.startswith(at) for (_, line), (_, at) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("rows", "body", "rules"),
    [
        (9, "x = x + self.pos[:, : x.shape[1]]", []),
        (9, "x = x + self.pos[:, x.shape[1]]", ["one-position-for-all"]),
        (9, "first = first + self.pos[:, :1]; x = torch.cat([first, x], 1)", []),
        (6, LATE, ["token-after-positions"]),
        (9, LATE, []),
        (6, EARLY, []),
    ],
)
def test_each_position_takes_its_own_row_of_a_table(rows, body, rules):
    """An index where a slice was meant; a class token whose row nothing ever takes."""
    found = look(TABLE.format(rows=rows, body=body), 8)
    assert [rule for rule, _ in found] == rules


def test_a_sum_of_a_tensor_with_itself_has_lost_its_residual():
    """The sublayer's input was written over; a tensor that is doubled by a number is none."""
    text = TABLE.format(rows=9, body="x = x + x")
    assert [rule for rule, _ in look(text, 8)] == ["residual-missing"]
    assert look(TABLE.format(rows=9, body="x = 2 * x"), 8) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pos_embed.weight", True),
        ("encoder.abs_pos", True),
        ("mixers.0.rotary_emb.inv_freq", True),
        ("query_pos.weight", False),
        ("post_norm", False),
    ],
)
def test_what_modules_call_their_positions(name, expected):
    """Learned queries are no positions of the input, whatever they are called."""
    assert bool(POSITION.search(name)) == expected

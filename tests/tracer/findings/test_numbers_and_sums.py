"""Scales of fused attention, sums that pass a sublayer by, numbers and tables of positions."""

import sys
import types

import pytest
import torch

import attnlab

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

"""
FUSED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (3, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return {attend}
"""
BLOCK = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)
        self.mlp = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12))
        self.time = nn.Embedding(5, 12)

    def attend(self, x):
        return self.o(F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x)))

    def forward(self, x):
        {body}
"""
POSITIONS = """
class Net(nn.Module):
    def forward(self, x):
        at = {at}
        return x + (at[:, None] * 0.5).cos()
"""
TABLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        at, i = torch.arange(20)[:, None], torch.arange(12)
        angles = at / 10000 ** ({exponent} / 12)
        table = torch.zeros(20, 12)
        table[:, {sines}] = angles[:, {sines}].sin()
        table[:, {cosines}] = angles[:, {cosines}].cos()
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""
DROPPED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(5, 12))

    def forward(self, x):
        {statement}
        return x * 2
"""


def found(folder, text, rule):
    """The severities of a rule's findings in a class Net of this text."""
    path = folder / f"{folder.name}.py"
    path.write_text(HEAD + text)
    module = types.ModuleType(folder.name)
    module.__file__ = str(path)
    sys.modules[folder.name] = module
    exec(compile(HEAD + text, str(path), "exec"), module.__dict__)
    seen = attnlab.trace(module.Net().eval(), torch.randn(2, 5, 12)).findings
    return [f.severity for f in seen if f.rule == rule]


@pytest.mark.parametrize(
    ("attend", "severities"),
    [
        ("F.scaled_dot_product_attention(q * 4**-0.5, k, v)", ["warning"]),
        ("F.scaled_dot_product_attention(q * 4**-0.25, k * 4**-0.25, v)", ["warning"]),
        ("F.scaled_dot_product_attention(q * 4**-0.5, k, v, scale=1.0)", []),
        ("F.scaled_dot_product_attention(q, k, v)", []),
        ("F.scaled_dot_product_attention(q, k, v, scale=0.25)", []),
    ],
)
def test_scores_are_scaled_once(attend, severities, tmp_path):
    """A fused attention scales by itself; one that is told another scale means it."""
    assert found(tmp_path, FUSED.format(attend=attend), "scale") == severities


@pytest.mark.parametrize(
    ("body", "severities"),
    [
        ("h = self.one(x + self.attend(x)); return self.two(x + self.mlp(h))", ["warning"]),
        ("h = x + self.attend(self.one(x)); return x + self.mlp(self.two(h))", ["warning"]),
        ("h = self.one(x + self.attend(x)); return self.two(h + self.mlp(h))", []),
        ("h = x + self.attend(self.one(x)); return h + self.mlp(self.two(h))", []),
        ("y = self.one(x); return x + self.attend(y) + self.mlp(y)", []),
        ("h = x + self.attend(x); return h + x + self.mlp(self.two(h))", []),
        ("return x + self.mlp(x + self.time.weight[:1])", []),
        ("return x + self.mlp(self.one(x + self.time(torch.ones(1, 5, dtype=torch.long))))", []),
    ],
)
def test_a_sum_goes_on_with_the_sum_before(body, severities, tmp_path):
    """After and before norms; blocks in parallel, extra paths, and what tells the time."""
    assert found(tmp_path, BLOCK.format(body=body), "residual-missing") == severities


@pytest.mark.parametrize(
    ("at", "severities"),
    [
        ("torch.arange(x.shape[1]).bfloat16()", ["warning"]),
        ("torch.arange(x.shape[1], dtype=torch.float16)", ["warning"]),
        ("torch.arange(x.shape[1]).type_as(x.half())", ["warning"]),
        ("torch.arange(x.shape[1]).float()", []),
        ("torch.arange(x.shape[1])", []),
    ],
)
def test_positions_are_counted_in_full(at, severities, tmp_path):
    """16 bits do not hold all whole numbers of a long text."""
    assert found(tmp_path, POSITIONS.format(at=at), "dtype-narrowed") == severities


@pytest.mark.parametrize(
    ("exponent", "halves", "severities"),
    [
        ("i // 2 * 2", False, []),
        ("i % 6 * 2", True, []),
        ("2 * i", False, ["warning"]),
        ("i", False, ["warning"]),
    ],
)
def test_a_pair_of_columns_is_of_one_angle(exponent, halves, severities, tmp_path):
    """Tables of alternating columns and of halves, and exponents that count columns."""
    sines, cosines = (":6", "6:") if halves else ("::2", "1::2")
    text = TABLE.format(exponent=exponent, sines=sines, cosines=cosines)
    assert found(tmp_path, text, "sinusoid-pairs") == severities


@pytest.mark.parametrize(
    ("statement", "severities"), [("x + self.pos", ["warning"]), ("x = x + self.pos", [])]
)
def test_a_sum_that_nobody_takes_is_dropped(statement, severities, tmp_path):
    """`x + pe` alone on its line changes nothing."""
    assert found(tmp_path, DROPPED.format(statement=statement), "result-dropped") == severities

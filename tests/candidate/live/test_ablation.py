"""Parts that are switched off: which are found, what that changes, and what it breaks."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlab.candidate.live.ablation import IN_EVAL, SAYS_NOTHING, ablate


class ScaleNorm(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


class Block(nn.Module):
    """Heads in a loop, a mask by sums, a rotation by complex numbers, a norm by hand."""

    def __init__(self, dim=8, heads=2):
        super().__init__()
        wide = dim // heads
        self.norm = ScaleNorm()
        self.keys = nn.ModuleList(nn.Linear(dim, wide) for _ in range(heads))
        self.out = nn.Linear(dim, dim)
        angles = torch.outer(torch.arange(9), 10.0 ** -torch.arange(wide // 2))
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def forward(self, x):
        length = x.size(1)
        closed = torch.full((length, length), -math.inf).triu(1)
        heads = []
        for keys in self.keys:
            k = keys(self.norm(x)).unflatten(-1, (-1, 2))
            k = torch.view_as_real(torch.view_as_complex(k.float()) * self.turns[:length])
            scores = k.flatten(2) @ k.flatten(2).mT + closed
            heads.append(scores.softmax(-1) @ k.flatten(2))
        return x + self.out(torch.cat(heads, -1).to(x.dtype))


class Net(nn.Module):
    def __init__(self, drop=0.0, mask_again=False):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.pos = nn.Parameter(torch.randn(9, 8))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.drop, self.mask_again = drop, mask_again

    def forward(self, ids):
        x = self.embed(ids) + self.pos[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        if self.mask_again:  # rows are open where it masks nothing
            x = x.masked_fill(ids.unsqueeze(-1) < 0, 0.0)
        return F.dropout(x, self.drop)


def parts_of(model, *args, **kwargs):
    report = ablate(model, args, kwargs)
    return report, {(part.kind, part.what): part for part in report.parts}


IDS = torch.randint(11, (2, 6), generator=torch.Generator().manual_seed(1))


def test_parts_are_found_in_any_style():
    """Masks, positions, norms, residuals, heads and blocks are read off values, not off names."""
    report, parts = parts_of(Net(), IDS)
    assert (report.causal, report.ordered) == (True, True)
    assert parts["mask", "mask"].times == 4
    assert parts["mask", "mask"].broke == ("causality",)
    assert parts["positions", "rotary positions"].times == 4
    assert parts["norm", "ScaleNorm"].times == 2
    assert parts["residual", "residual"].change > parts["branch", "branch"].change > 0
    assert {what for kind, what in parts if kind == "head"} == {f"head {n}" for n in range(4)}
    assert {what for kind, what in parts if kind == "block"} == {"blocks.0", "blocks.1"}
    assert all(part.file.endswith("test_ablation.py") for part in report.parts if part.line)
    changes = [part.change for part in report.parts]
    assert changes == sorted(changes, reverse=True)


def test_a_part_that_changes_nothing_is_a_finding():
    """A mask that closes nothing, and no other part."""
    report, _parts = parts_of(Net(mask_again=True), IDS)
    found = [part for part in report.parts if part.is_finding]
    assert [(part.kind, part.message) for part in found] == [("mask", SAYS_NOTHING)]


def test_dropout_that_acts_in_eval_mode_is_a_finding():
    """Elsewhere dropout is switched off in train mode, where it changes something."""
    _, parts = parts_of(Net(drop=0.5), IDS)
    assert parts["dropout", "dropout in training"].message == IN_EVAL
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    _, parts = parts_of(layer, torch.randn(2, 6, 8))
    drops = [part for (kind, _), part in parts.items() if kind == "dropout"]
    assert drops
    assert all(part.change > 0 and not part.message for part in drops)


def test_heads_of_the_fused_kernel_are_switched_off_one_by_one():
    """PyTorch's layer is opened into its steps; a part is as much of the output as it changes."""
    attention = nn.MultiheadAttention(8, 4, bias=False, batch_first=True)
    x = torch.randn(2, 6, 8)
    _, parts = parts_of(attention, x, x, x, need_weights=False)
    assert {what for kind, what in parts if kind == "head"} == {f"head {n}" for n in range(4)}
    whole, _ = attention(x, x, x)
    with torch.no_grad():
        attention.out_proj.weight[:, :2] = 0
    cut, _ = attention(x, x, x)
    told = (whole - cut).square().mean().sqrt() / whole.square().mean().sqrt()
    assert parts["head", "head 0"].change == pytest.approx(told.item(), rel=1e-3)


def test_a_loss_is_told_with_each_part():
    """What the module returns as its loss, or the cross-entropy with the targets of a demo."""
    targets = torch.randint(8, (2, 6))
    report = ablate(Net(), (IDS,), {}, targets)
    assert report.loss is not None
    assert all(part.loss is not None for part in report.parts if part.kind != "dropout")


def test_what_cannot_be_measured_is_said():
    """NaN, a call that raises, and a module without parts: no rows, and the reason."""

    class Broken(nn.Module):
        def forward(self, x, fall=False):
            if fall:
                raise ValueError("fell")
            return x * math.nan

    x = torch.randn(2, 3, 4)
    assert "not finite" in ablate(Broken(), (x,), {}).notes[0]
    assert "ValueError: fell" in ablate(Broken(), (x,), {"fall": True}).notes[0]
    assert "no mask" in ablate(nn.Linear(4, 4), (x,), {}).notes[0]

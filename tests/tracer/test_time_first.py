"""Inputs whose axes nobody named, read as (S, B, ...) where batch first fits no operation."""

import math

import pytest
import torch
from torch import nn

import attnlab

B, S, D, H, V = 4, 10, 24, 3, 50


class Tutorial(nn.Module):
    """Token ids (S, B) and a table of positions cut by the length of the first axis."""

    def __init__(self, places=slice(None)):
        super().__init__()
        self.places = places
        self.embed = nn.Embedding(V, D)
        self.register_buffer("pe", torch.randn(64, 1, D))
        self.layer = nn.TransformerEncoderLayer(D, H, 48)
        self.out = nn.Linear(D, V)

    def forward(self, src):
        x = self.embed(src) * math.sqrt(D)
        x = x + self.pe[: x.size(0)]
        return self.out(self.layer(x)[self.places])


class Attention(nn.Module):
    """(S, B, D) with heads folded into the batch, as fairseq has it."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        n, b, _ = x.shape
        q, k, v = (f(x).view(n, b * H, D // H).transpose(0, 1) for f in (self.q, self.k, self.v))
        weights = (q @ k.transpose(1, 2) / (D // H) ** 0.5).softmax(-1)
        return (weights @ v).transpose(0, 1).reshape(n, b, D)


class Forgot(nn.Module):
    """Batch first but for its layer: the mean over axis 1 says that positions stand there."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(D, H, 48)
        self.head = nn.Linear(D, 2)

    def forward(self, x):
        return self.head(self.layer(x + 0.1).mean(1))


def grave(module, *given, **more):
    trace = attnlab.trace(module.eval(), *given, **more)
    return [f.rule for f in trace.findings if f.severity != "note"], trace


def test_ids_of_time_and_batch_are_recognised():
    """`pe[:x.size(0)]` on ids (T, B), the style of PyTorch's tutorial, raises no alarm."""
    rules, trace = grave(Tutorial(), torch.randint(V, (S, B)))
    assert rules == []
    assert trace.ops[-1].axes[:2] == ("S", "B")


def test_heads_folded_into_the_second_axis_are_recognised():
    """(S, B*H, hd) is no batch contraction where the first axis is time."""
    rules, trace = grave(Attention(), torch.randn(S, B, D))
    assert rules == []
    assert trace.ops[-1].axes[:2] == ("S", "B")
    assert trace.sizes["S"] == S
    assert trace.sizes["B"] == B


def test_a_forgotten_batch_first_is_still_told():
    """Time first is no excuse where the module then averages entries of the batch."""
    rules, _ = grave(Forgot(), torch.randn(B, S, D))
    assert "batch-contraction" in rules


def test_names_that_the_user_gives_are_believed():
    """With dims, the same call is told as it was said to be."""
    rules, _ = grave(Tutorial(), torch.randint(V, (S, B)), dims="src: B S")
    assert "batch-contraction" in rules


@pytest.mark.parametrize("dim", [(0, 1), (0,)])
def test_a_statistic_of_the_batch_is_a_note(dim):
    """A mean over batch and positions is a batch norm; over the batch alone it is an accident."""

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(D, D)

        def forward(self, x):
            x = self.proj(x)
            return (x - x.mean(dim)) / (x.var(dim) + 1e-5).sqrt()

    rules, trace = grave(Norm(), torch.randn(B, S, D), dims="x: B S D")
    assert "batch-contraction" in [f.rule for f in trace.findings]
    assert ("batch-contraction" in rules) is (dim == (0,))


def test_a_covariance_over_the_batch_is_a_note():
    """`z.T @ z` of features of entries is what a loss on correlations takes on purpose."""

    class Covariance(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(D, 16)

        def forward(self, x):
            z = self.proj(x)
            return z.t() @ z / len(z)

    rules, _ = grave(Covariance(), torch.randn(B, D), dims="x: B D")
    assert rules == []

"""Steps with a cache give what one pass gives, in every form that a cache has; else it is told."""

import sys
import types

import pytest
import torch

from attnlab import verify

TEXT = """
import torch
from torch import nn

class KVCache:
    def __init__(self, batch, max_len, dim):
        self.k, self.v = torch.zeros(2, batch, max_len, dim, dtype=torch.float64)
        self.used = 0

class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, past):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v, kept = {join}
        ahead = torch.ones(q.shape[1], k.shape[1]).triu(1 + k.shape[1] - q.shape[1]).bool()
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(ahead, float("-inf"))
        return x + scores.softmax(-1) @ v, kept

class Net(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.dim = dim
        self.embed, self.position = nn.Embedding(11, dim), nn.Embedding(32, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))

    def forward(self, ids, cache=None, start_pos=0):
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1]) + {offset})
        {body}
        return {back}
"""
EACH = """cache = cache or [None] * 2
        kept = []
        for layer, past in zip(self.layers, cache):
            x, one = layer(x, past)
            kept.append(one)"""
FILL = """cache = cache if cache is not None else {form}
        for number, layer in enumerate(self.layers):
            x, one = layer(x, cache.get(number))
            cache[number] = one"""
OWN = """start = cache.used if cache is not None else 0
        x, one = self.layers[0](x, (cache.k[:, :start], cache.v[:, :start]) if start else None)
        if cache is not None:
            cache.used = start + ids.shape[1]
            cache.k[:, :cache.used], cache.v[:, :cache.used] = one"""
JOIN = (
    "(*(pair := (k, v) if past is None else tuple(torch.cat(p, 1) for p in zip(past, (k, v)))), "
    "pair)"
)
RETURNED = {"join": JOIN, "offset": "start_pos", "body": EACH, "back": "x, kept"}
DICT = {**RETURNED, "body": FILL.format(form="{}"), "back": "x"}
CLASS = {**RETURNED, "body": OWN, "back": "x"}


def decoded(form, **changes):
    space = types.ModuleType("cached_net")
    sys.modules["cached_net"] = space
    exec(TEXT.format(**{**form, **changes}), vars(space))
    torch.manual_seed(0)
    found = verify(space.Net(), torch.randint(11, (3, 7)))
    return next(check for check in found.properties if check.id == "prefill-equals-decode")


@pytest.mark.parametrize("form", [RETURNED, DICT, CLASS], ids=["returned", "dict", "class"])
def test_steps_with_a_cache_equal_one_pass(form):
    """A pair that is returned, a dict that is filled, an object of the file's own class."""
    check = decoded(form)
    assert (check.outcome, check.message) == ("passed", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": "0"},
        {"join": "(k, v, (k, v))"},
    ],
    ids=["positions-begin-anew", "cache-of-the-last-call"],
)
def test_steps_that_differ_are_told(changes):
    """With the position and by how much."""
    check = decoded(RETURNED, **changes)
    assert check.outcome == "failed"
    assert "prefill of 5 positions, the step for position" in check.message


def test_a_cache_that_cannot_be_made_is_told():
    """Nothing is claimed of it."""
    check = decoded({**CLASS, "back": "x"}, body=OWN.replace("cache.used", "cache.spent"))
    assert check.outcome == "error"
    assert "cache" in check.message

"""A decoder-only transformer without modules: functions of nested dicts of weights.

Letters of einsum: b batch, q and k places that ask and that are asked, m width of the model,
h heads, d width of a head, f width of the hidden layer, v vocabulary.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, einsum

Weights = dict[str, Any]
EPS = 1e-5


def init(vocab: int, context: int, width: int, heads: int, layers: int) -> Weights:
    """Fresh weights. Queries, keys and values are (m, h, d), their way back is (h, d, m)."""

    def normal(*shape: int, fan_in: int) -> Tensor:
        return (torch.randn(shape) / math.sqrt(fan_in)).requires_grad_()

    def norm() -> Weights:
        return {
            "gain": torch.ones(width, requires_grad=True),
            "shift": torch.zeros(width, requires_grad=True),
        }

    def layer() -> Weights:
        d = width // heads
        return {
            "norm1": norm(),
            "attention": {
                "query": normal(width, heads, d, fan_in=width),
                "key": normal(width, heads, d, fan_in=width),
                "value": normal(width, heads, d, fan_in=width),
                "out": normal(heads, d, width, fan_in=width),
            },
            "norm2": norm(),
            "mlp": {
                "up": normal(width, 4 * width, fan_in=width),
                "bias": torch.zeros(4 * width, requires_grad=True),
                "down": normal(4 * width, width, fan_in=4 * width),
            },
        }

    return {
        "embed": {
            "notes": normal(vocab, width, fan_in=width),
            "places": normal(context, width, fan_in=width),
        },
        "layers": [layer() for _ in range(layers)],
        "norm": norm(),
        "head": normal(width, vocab, fan_in=width),
    }


def leaves(tree: Any) -> Iterator[Tensor]:
    """Every tensor of nested dicts and lists, always in the same order."""
    if isinstance(tree, Tensor):
        yield tree
        return
    branches = tree.values() if isinstance(tree, dict) else tree
    for branch in branches:
        yield from leaves(branch)


def layer_norm(w: Weights, x: Tensor) -> Tensor:
    """Each vector with mean 0 and variance 1, then gain and shift."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return w["gain"] * centred / torch.sqrt(variance + EPS) + w["shift"]


def attend(w: Weights, x: Tensor, block: int | None = None) -> Tensor:
    """Attention over the notes so far, x (b, q, m); of keys at most `block` are read at once."""
    q = einsum("bqm,mhd->bqhd", x, w["query"])
    k = einsum("bkm,mhd->bkhd", x, w["key"])
    v = einsum("bkm,mhd->bkhd", x, w["value"])
    found = mix(q, k, v) if block is None else mix_in_blocks(q, k, v, block)
    return einsum("bqhd,hdm->bqm", found, w["out"])


def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The values (b, k, h, d) that queries (b, q, h, d) find at their place and before it."""
    scores = einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    place = torch.arange(q.shape[1], device=q.device)
    later = place[None, :] > place[:, None]
    shares = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
    return einsum("bhqk,bkhd->bqhd", shares, v)


def mix_in_blocks(q: Tensor, k: Tensor, v: Tensor, block: int) -> Tensor:
    """The same, with a softmax that goes on from block to block of keys."""
    place = torch.arange(q.shape[1], device=q.device)
    highest = q.new_full((*q.shape[:3], 1), -math.inf)
    total = torch.zeros_like(highest)
    found = torch.zeros_like(q)
    for first in range(0, k.shape[1], block):
        keys, values = k[:, first : first + block], v[:, first : first + block]
        scores = einsum("bqhd,bkhd->bqhk", q, keys) / math.sqrt(q.shape[-1])
        later = place[first : first + block] > place[:, None]
        scores = scores.masked_fill(later[:, None], -math.inf)
        higher = torch.maximum(highest, scores.amax(dim=-1, keepdim=True))
        shares = torch.exp(scores - higher)
        shrink = torch.exp(highest - higher)
        total = total * shrink + shares.sum(dim=-1, keepdim=True)
        found = found * shrink + einsum("bqhk,bkhd->bqhd", shares, values)
        highest = higher
    return found / total


def mlp(w: Weights, x: Tensor) -> Tensor:
    """A hidden layer with tanh, for each place alone."""
    hidden = torch.tanh(einsum("bqm,mf->bqf", x, w["up"]) + w["bias"])
    return einsum("bqf,fm->bqm", hidden, w["down"])


def apply_layer(w: Weights, x: Tensor, block: int | None = None) -> Tensor:
    """Both sublayers read a normalised copy and are added to the stream."""
    x = x + attend(w["attention"], layer_norm(w["norm1"], x), block)
    return x + mlp(w["mlp"], layer_norm(w["norm2"], x))


def embed(w: Weights, ids: Tensor) -> Tensor:
    """Each id (b, q) as its vector and that of its place (b, q, m)."""
    return w["notes"][ids] + w["places"][: ids.shape[1]]


def forward(weights: Weights, ids: Tensor, block: int | None = None) -> Tensor:
    """Ids (b, q) to logits (b, q, v)."""
    x = embed(weights["embed"], ids)
    for layer in weights["layers"]:
        x = apply_layer(layer, x, block)
    return einsum("bqm,mv->bqv", layer_norm(weights["norm"], x), weights["head"])

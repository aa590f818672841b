"""A decoder-only transformer without modules, written for one tune and mapped over the batch.

Letters of einsum: q and k places that ask and that are asked, m width of the model, h heads,
d width of a head, v vocabulary.
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


def attend_one_head(x: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor) -> Tensor:
    """The share of one head in the output, x (q, m), weights (m, d) and (d, m)."""
    length, width = x.shape[0], query.shape[1]
    open_ = torch.arange(length) <= torch.arange(length)[:, None]
    scores = (x @ query) @ (x @ key).T / math.sqrt(width)
    scores = torch.where(open_, scores, torch.finfo(x.dtype).min)
    raised = torch.exp(scores - scores.amax(-1, keepdim=True))
    return raised / raised.sum(-1, keepdim=True) @ (x @ value) @ out


def attend(w: Weights, x: Tensor) -> Tensor:
    """Attention over the notes so far, x (b, q, m)."""
    over_heads = torch.vmap(attend_one_head, in_dims=(None, 1, 1, 1, 0))
    over_tunes = torch.vmap(over_heads, in_dims=(0, None, None, None, None))
    return over_tunes(x, w["query"], w["key"], w["value"], w["out"]).sum(dim=1)


def mlp(w: Weights, x: Tensor) -> Tensor:
    """A hidden layer with tanh, for each place alone."""
    hidden = torch.tanh(einsum("bqm,mf->bqf", x, w["up"]) + w["bias"])
    return einsum("bqf,fm->bqm", hidden, w["down"])


def apply_layer(w: Weights, x: Tensor) -> Tensor:
    """Both sublayers read a normalised copy and are added to the stream."""
    x = x + attend(w["attention"], layer_norm(w["norm1"], x))
    return x + mlp(w["mlp"], layer_norm(w["norm2"], x))


def embed(w: Weights, ids: Tensor) -> Tensor:
    """Each id (b, q) as its vector and that of its place (b, q, m)."""
    return w["notes"][ids] + w["places"][: ids.shape[1]]


def forward(weights: Weights, ids: Tensor) -> Tensor:
    """Ids (b, q) to logits (b, q, v)."""
    x = embed(weights["embed"], ids)
    for layer in weights["layers"]:
        x = apply_layer(layer, x)
    return einsum("bqm,mv->bqv", layer_norm(weights["norm"], x), weights["head"])

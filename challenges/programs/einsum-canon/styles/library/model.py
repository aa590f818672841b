"""A decoder-only transformer without modules: the library's functions over dicts of weights."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

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
    return F.layer_norm(x, x.shape[-1:], w["gain"], w["shift"], EPS)


def attend(w: Weights, x: Tensor) -> Tensor:
    """Attention over the notes so far, x (b, q, m)."""
    q, k, v = (torch.tensordot(x, w[name], 1).transpose(1, 2) for name in ("query", "key", "value"))
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return found.transpose(1, 2).flatten(2) @ w["out"].flatten(0, 1)


def mlp(w: Weights, x: Tensor) -> Tensor:
    """A hidden layer with tanh, for each place alone."""
    hidden = torch.tanh(F.linear(x, w["up"].T, w["bias"]))
    return hidden @ w["down"]


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
    return layer_norm(weights["norm"], x) @ weights["head"]

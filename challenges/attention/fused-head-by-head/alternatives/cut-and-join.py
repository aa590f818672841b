"""Cuts each third into heads and joins what belongs together."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

State = dict[str, Tensor]


class FusedAttention(nn.Module):
    """Self-attention; one projection gives query, key and value of each head in turn."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.dense = nn.Linear(width, width)

    def forward(self, hidden: Tensor, keep: Tensor | None = None) -> Tensor:
        batch, length, width = hidden.shape
        fused = self.query_key_value(hidden).view(batch, length, self.heads, 3, -1)
        query, key, value = fused.unbind(dim=3)
        scores = torch.einsum("bqhc,bkhc->bhqk", query, key) * query.shape[-1] ** -0.5
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, :], -torch.inf)
        context = torch.einsum("bhqk,bkhc->bqhc", scores.softmax(dim=-1), value)
        return self.dense(context.reshape(batch, length, width))


def convert(old, heads):
    new = {f"dense.{kind}": old[f"out_proj.{kind}"] for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        thirds = [part.chunk(heads) for part in old[f"in_proj_{kind}"].chunk(3)]
        new[f"query_key_value.{kind}"] = torch.cat(
            [head for three in zip(*thirds) for head in three]
        )
    return new


def ported_attention(heads: int) -> Callable[..., Tensor]:
    """Feed the new layer with an old checkpoint. Not to be changed: this is what is graded."""

    def call(
        hidden: Tensor,
        in_weight: Tensor,
        in_bias: Tensor,
        out_weight: Tensor,
        out_bias: Tensor,
        keep: Tensor | None = None,
    ) -> Tensor:
        width = hidden.shape[-1]
        codes = (in_weight, in_bias, out_weight, out_bias)  # whole numbers from 0 to 255
        weights = [(code.to(hidden) - 127.5) / 74 for code in codes]
        names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
        old = {n: w / width**0.5 if w.dim() > 1 else w for n, w in zip(names, weights, strict=True)}
        with torch.device("meta"):  # no weights of its own
            layer = FusedAttention(width, heads)
        layer.load_state_dict(convert(old, heads), strict=True, assign=True)
        return layer(hidden, keep)

    return call

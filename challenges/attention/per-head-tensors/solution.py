"""Weights of grouped-query attention, for a model that will be analysed head by head."""

import torch
from torch import Tensor, einsum, nn


class HeadedAttention(nn.Module):
    """Full heads, each with matrices of its own, so that one can be looked at or cut out."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        d_head = d_model // n_heads
        into, out = (n_heads, d_model, d_head), (n_heads, d_head, d_model)
        for name in ("W_Q", "W_K", "W_V"):
            self.register_parameter(name, nn.Parameter(torch.empty(into)))
        for name in ("b_Q", "b_K", "b_V"):
            self.register_parameter(name, nn.Parameter(torch.empty(n_heads, d_head)))
        self.W_O = nn.Parameter(torch.empty(out))

    def project(self, x: Tensor, letter: str) -> Tensor:
        weight, bias = getattr(self, f"W_{letter}"), getattr(self, f"b_{letter}")
        return einsum("b s d, h d e -> b s h e", x, weight) + bias

    def pattern(self, x: Tensor) -> Tensor:
        """How much of each token every token takes: (B, heads, S, S)."""
        q, k = self.project(x, "Q"), self.project(x, "K")
        scores = einsum("b q h e, b k h e -> b h q k", q, k)
        return (scores / q.shape[-1] ** 0.5).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        z = einsum("b h q k, b k h e -> b q h e", self.pattern(x), self.project(x, "V"))
        return einsum("b q h e, h e d -> b q d", z, self.W_O)


def convert(old: dict[str, Tensor], n_heads: int, n_kv_heads: int) -> dict[str, Tensor]:
    """The state dict of `HeadedAttention` that does what the grouped layer did."""
    new = {}
    for letter, heads in (("q", n_heads), ("k", n_kv_heads), ("v", n_kv_heads)):
        weight = old[f"{letter}_proj.weight"].unflatten(0, (heads, -1))
        bias = old[f"{letter}_proj.bias"].unflatten(0, (heads, -1))
        served = n_heads // heads
        new[f"W_{letter.upper()}"] = weight.transpose(1, 2).repeat_interleave(served, dim=0)
        new[f"b_{letter.upper()}"] = bias.repeat_interleave(served, dim=0)
    new["W_O"] = old["o_proj.weight"].T.unflatten(0, (n_heads, -1))
    return new


class Port(nn.Module):
    """Old weights, new layer. Not to be changed: this is what is graded."""

    def __init__(self, n_heads: int, n_kv_heads: int) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads

    def forward(
        self,
        x: Tensor,
        wq: Tensor,
        bq: Tensor,
        wk: Tensor,
        bk: Tensor,
        wv: Tensor,
        bv: Tensor,
        wo: Tensor,
    ) -> Tensor:
        d_model = x.shape[-1]
        codes = {"o_proj.weight": wo}  # whole numbers from 0 to 255
        for letter, weight, bias in (("q", wq, bq), ("k", wk, bk), ("v", wv, bv)):
            codes[f"{letter}_proj.weight"], codes[f"{letter}_proj.bias"] = weight, bias
        old = {name: (code.to(x) - 127.5) / 74 for name, code in codes.items()}
        for matrix in (name for name in old if name.endswith("weight")):
            old[matrix] = old[matrix] / d_model**0.5
        with torch.device("meta"):
            layer = HeadedAttention(d_model, self.n_heads)
        new = convert(old, self.n_heads, self.n_kv_heads)
        layer.load_state_dict(new, strict=True, assign=True)
        return layer(x)

"""Reads the three parts off one axis of their own."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """Causal self-attention, with a linear layer for each projection."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        layers = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in layers)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))


def convert(old):
    weight, bias = old["attn.c_attn.weight"], old["attn.c_attn.bias"]
    dim = weight.size(0)
    wq, wk, wv = weight.view(dim, 3, dim).permute(1, 2, 0)
    bq, bk, bv = bias.view(3, dim)
    wo = torch.einsum("io->oi", old["attn.c_proj.weight"])
    names = ["q_proj", "k_proj", "v_proj", "out_proj"]
    pairs = zip(names, [wq, wk, wv, wo], [bq, bk, bv, old["attn.c_proj.bias"]])
    return {f"{n}.{kind}": t for n, w, b in pairs for kind, t in (("weight", w), ("bias", b))}


class PortedAttention(nn.Module):
    """Feeds the new layer with an old checkpoint. Not to be changed: this is what is graded."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(
        self,
        x: Tensor,
        c_attn_weight: Tensor,
        c_attn_bias: Tensor,
        c_proj_weight: Tensor,
        c_proj_bias: Tensor,
    ) -> Tensor:
        length, dim = x.shape[1:]

        def unpack(codes: Tensor) -> Tensor:
            return (codes.to(x) - 127.5) / 74  # the file holds whole numbers from 0 to 255

        old = {
            "attn.bias": torch.ones(1, 1, length, length, device=x.device).tril(),
            "attn.c_attn.weight": unpack(c_attn_weight) / dim**0.5,
            "attn.c_attn.bias": unpack(c_attn_bias),
            "attn.c_proj.weight": unpack(c_proj_weight) / dim**0.5,
            "attn.c_proj.bias": unpack(c_proj_bias),
        }
        with torch.device("meta"):  # the weights come from the checkpoint alone
            layer = SelfAttention(dim, self.heads)
        layer.load_state_dict(convert(old), strict=True, assign=True)
        return layer(x)

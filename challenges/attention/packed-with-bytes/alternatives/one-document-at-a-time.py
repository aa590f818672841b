"""Cuts each row into its documents and lets each attend by itself."""

import torch
import torch.nn.functional as F
from torch import nn


class PackedAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.W_pack = nn.Linear(d_model, 3 * d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, document):
        packed = self.W_pack(x).unflatten(-1, (3, self.n_head, -1))
        rows = []
        for row, numbers in zip(packed, document):
            _, lengths = numbers.unique_consecutive(return_counts=True)
            pieces = []
            for part in row.split(lengths.tolist()):
                q, k, v = part.permute(1, 2, 0, 3)
                pieces.append(
                    F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)
                )
            rows.append(torch.cat(pieces, dim=2))
        return self.o_proj(torch.cat(rows).transpose(1, 2).flatten(2))

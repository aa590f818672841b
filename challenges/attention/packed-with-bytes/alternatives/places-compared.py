"""Compares places and documents, both as booleans."""

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
        q, k, v = self.W_pack(x).unflatten(-1, (3, self.n_head, -1)).movedim((2, 3), (0, 2))
        place = torch.arange(x.shape[1], device=x.device)
        later = place > place[:, None]
        other = document.unsqueeze(1) != document.unsqueeze(2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~(later | other).unsqueeze(1))
        return self.o_proj(y.transpose(1, 2).flatten(2))

"""Self-attention for rows in which short documents are packed one behind the other."""

import torch
from torch import BoolTensor, FloatTensor, LongTensor, nn
from torch.nn.functional import scaled_dot_product_attention as attend


class PackedAttention(nn.Module):
    """No token sees the future, and none sees another document."""

    def __init__(self, d_model: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.W_pack = nn.Linear(d_model, 3 * d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: FloatTensor, document: LongTensor) -> FloatTensor:
        B, S, D = x.size()
        q, k, v = self.W_pack(x).split(D, dim=2)
        q = q.view(B, S, self.n_head, D // self.n_head).transpose(1, 2)  # B H S hd
        k = k.view(B, S, self.n_head, D // self.n_head).transpose(1, 2)
        v = v.view(B, S, self.n_head, D // self.n_head).transpose(1, 2)
        y = attend(q, k, v, attn_mask=self.may_see(document))
        return self.o_proj(y.transpose(1, 2).reshape(B, S, D))

    def may_see(self, document: LongTensor) -> BoolTensor:
        """True where a query (third axis) may look at a key (last axis), for all heads at once."""
        S = document.size(1)
        past = torch.ones(S, S, dtype=torch.bool, device=document.device).tril()
        together = document[:, None, :, None] == document[:, None, None, :]
        return past & together

"""A drop-in MultiheadAttention built from separate linears (needed for per-sample gradients)."""
import torch
from torch import Tensor, nn


class SplitMHA(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, batch_first: bool = False, bias: bool = True):
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.batch_first = batch_first
        self.qlinear = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.klinear = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.vlinear = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.batch_first:
            bsz, tgt_len, _ = query.shape
            src_len = key.shape[1]
        else:
            tgt_len, bsz, _ = query.shape
            src_len = key.shape[0]

        q = self.qlinear(query) * self.head_dim**-0.5
        k = self.klinear(key)
        v = self.vlinear(value)

        if self.batch_first:
            q = q.view(bsz, tgt_len, self.num_heads, self.head_dim).transpose(1, 2)
            k = k.view(bsz, src_len, self.num_heads, self.head_dim).transpose(1, 2)
            v = v.view(bsz, src_len, self.num_heads, self.head_dim).transpose(1, 2)
            q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
        else:
            q = q.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
            k = k.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
            v = v.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)

        weights = torch.bmm(q, k.transpose(1, 2)).softmax(dim=-1)
        attn = torch.bmm(weights, v)

        if self.batch_first:
            attn = attn.view(bsz, self.num_heads, tgt_len, self.head_dim).transpose(1, 2).reshape(bsz, tgt_len, self.embed_dim)
        else:
            attn = attn.transpose(0, 1).contiguous().view(tgt_len, bsz, self.embed_dim)
        return self.out_proj(attn)


def example():
    mha = SplitMHA(48, 6, batch_first=True)
    tgt, memory = torch.randn(2, 5, 48), torch.randn(2, 9, 48)
    return mha(tgt, memory, memory)


if __name__ == "__main__":
    print(example().shape)

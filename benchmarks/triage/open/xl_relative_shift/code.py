"""Transformer-XL attention with relative positions, sequence first."""
import torch
from torch import nn


def shift_right(x: torch.Tensor):
    """Row i of (i, j) scores by distance becomes scores by key."""
    zero_pad = x.new_zeros(x.shape[0], 1, *x.shape[2:])
    x_padded = torch.cat([x, zero_pad], dim=1)
    x_padded = x_padded.view(x.shape[1] + 1, x.shape[0], *x.shape[2:])
    return x_padded[1:].reshape(x.shape)


class RelativeMultiHeadAttention(nn.Module):
    def __init__(self, heads: int, d_model: int):
        super().__init__()
        self.P = 2 ** 7
        self.heads, self.d_k = heads, d_model // heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model)
        self.key_pos_embeddings = nn.Parameter(torch.randn(self.P * 2, heads, self.d_k) * 0.3)
        self.key_pos_bias = nn.Parameter(torch.zeros(self.P * 2, heads))
        self.query_pos_bias = nn.Parameter(torch.zeros(heads, self.d_k))

    def get_scores(self, query: torch.Tensor, key: torch.Tensor):
        i, j = query.shape[0], key.shape[0]
        key_pos_emb = self.key_pos_embeddings[self.P - j:self.P + i]
        key_pos_bias = self.key_pos_bias[self.P - j:self.P + i]
        ac = torch.einsum('ibhd,jbhd->ijbh', query + self.query_pos_bias, key)
        b = torch.einsum('ibhd,jhd->ijbh', query, key_pos_emb)
        bd = shift_right(b + key_pos_bias[None, :, None, :])
        return ac + bd[:, -j:]

    def forward(self, x: torch.Tensor):
        n, bsz, d = x.shape
        q, k, v = (f(x).view(n, bsz, self.heads, self.d_k) for f in (self.query, self.key, self.value))
        scores = self.get_scores(q, k) * self.d_k ** -0.5
        mask = torch.tril(torch.ones(n, n, device=x.device))[:, :, None, None]
        attn = scores.masked_fill(mask == 0, float('-inf')).softmax(dim=1)
        return self.output(torch.einsum('ijbh,jbhd->ibhd', attn, v).reshape(n, bsz, d))


class XLLayer(nn.Module):
    def __init__(self, d_model: int = 48, heads: int = 3):
        super().__init__()
        self.norm_attn, self.norm_ff = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = RelativeMultiHeadAttention(heads, d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, 96), nn.ReLU(), nn.Linear(96, d_model))

    def forward(self, x):
        x = x + self.attn(self.norm_attn(x))
        return x + self.ff(self.norm_ff(x))


def main():
    layer = XLLayer()
    print(layer(torch.randn(10, 2, 48)).shape)


if __name__ == '__main__':
    main()

"""Interpretable attention of the temporal fusion forecaster: the heads share their values."""
from typing import Optional

import torch
from torch import Tensor, nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, dropout: Optional[float] = None):
        super().__init__()
        self.dropout = nn.Dropout(dropout) if dropout is not None else None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor] = None):
        attn = torch.bmm(q, k.permute(0, 2, 1)) / (k.size(-1) ** 0.5)
        if mask is not None:
            attn = attn.masked_fill(mask, -1e-9)
        attn = torch.softmax(attn, dim=2)
        if self.dropout is not None:
            attn = self.dropout(attn)
        return torch.bmm(attn, v), attn


class InterpretableMultiHeadAttention(nn.Module):
    def __init__(self, n_head: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.n_head = n_head
        self.d_head = d_model // n_head
        self.v_layer = nn.Linear(d_model, self.d_head)
        self.q_layers = nn.ModuleList([nn.Linear(d_model, self.d_head) for _ in range(n_head)])
        self.k_layers = nn.ModuleList([nn.Linear(d_model, self.d_head) for _ in range(n_head)])
        self.attention = ScaledDotProductAttention()
        self.w_h = nn.Linear(self.d_head, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        vs = self.v_layer(x)
        heads = []
        for q_layer, k_layer in zip(self.q_layers, self.k_layers):
            head, _ = self.attention(q_layer(x), k_layer(x), vs, mask)
            heads.append(self.dropout(head))
        return self.dropout(self.w_h(torch.stack(heads, dim=2).mean(dim=2)))


class Forecaster(nn.Module):
    def __init__(self, features: int = 6, d_model: int = 32, horizon: int = 4):
        super().__init__()
        self.horizon = horizon
        self.inputs = nn.Linear(features, d_model)
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True)
        self.attention = InterpretableMultiHeadAttention(4, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.quantiles = nn.Linear(d_model, 3)

    def forward(self, series: Tensor) -> Tensor:
        steps = series.size(1)
        hidden, _ = self.lstm(self.inputs(series))
        future = torch.triu(torch.ones(steps, steps, dtype=torch.bool, device=series.device), diagonal=1)
        hidden = self.norm(hidden + self.attention(hidden, future.expand(series.size(0), -1, -1)))
        return self.quantiles(hidden[:, -self.horizon :])


if __name__ == "__main__":
    print(Forecaster()(torch.randn(5, 24, 6)).shape)

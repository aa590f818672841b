"""The other half of a Transformer block: what each position does by itself."""

import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references import _expect


class FeedForward(nn.Module):
    """Two layers with a GELU between them: down(gelu(up(x))).

    GELU is x * Phi(x), exactly; `tanh` takes its approximation by tanh, which GPT-2 was trained
    with (they differ by up to 5e-4).

    Shapes: x (B, S, D); output the same; F = `hidden_dim`.
    Source: "Attention Is All You Need" (Vaswani et al., 2017), section 3.3;
        "Gaussian Error Linear Units" (Hendrycks and Gimpel, 2016)
    Rows: A6"""

    def __init__(
        self,
        embed_dim: int,
        hidden_dim: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        tanh: bool = False,
    ) -> None:
        super().__init__()
        _expect.positive(embed_dim=embed_dim, hidden_dim=hidden_dim)
        _expect.probability(dropout=dropout)
        self.up = nn.Linear(embed_dim, hidden_dim, bias=bias)
        self.down = nn.Linear(hidden_dim, embed_dim, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.approximate = "tanh" if tanh else "none"

    def forward(self, x: Tensor) -> Tensor:
        _expect.sequence("x", x, self.up)
        hidden = F.gelu(self.up(x), approximate=self.approximate)  #      (B, S, F)
        out: Tensor = self.down(self.dropout(hidden))  #                  (B, S, D)
        return out


class SwiGLU(nn.Module):
    """A gated layer: down(silu(gate(x)) * up(x)).

    Three matrices instead of two: with F = 2/3 * 4 * D it has as many weights as `FeedForward`
    with 4 * D. silu(x) = x * sigmoid(x), which is also called swish. The silu falls on the gate
    alone; implementations that fuse both in one matrix differ in which half is the gate.

    Shapes: x (B, S, D); output the same; F = `hidden_dim`.
    Source: "GLU Variants Improve Transformer" (Shazeer, 2020)
    Rows: A6"""

    def __init__(
        self, embed_dim: int, hidden_dim: int, *, bias: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        _expect.positive(embed_dim=embed_dim, hidden_dim=hidden_dim)
        _expect.probability(dropout=dropout)
        self.gate = nn.Linear(embed_dim, hidden_dim, bias=bias)
        self.up = nn.Linear(embed_dim, hidden_dim, bias=bias)
        self.down = nn.Linear(hidden_dim, embed_dim, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        _expect.sequence("x", x, self.up)
        hidden = F.silu(self.gate(x)) * self.up(x)  #                     (B, S, F)
        out: Tensor = self.down(self.dropout(hidden))  #                  (B, S, D)
        return out

"""A small decoder-only transformer over characters."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cache import KVCache


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position sees a later one."""

    def __init__(self, width: int, heads: int, context: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: KVCache | None = None, layer: int = 0) -> Tensor:
        batch, length, width = x.shape
        head_width = width // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(layer, k, v)
        visible = torch.ones(length, k.size(2), dtype=torch.bool, device=x.device)
        visible = visible.tril(diagonal=k.size(2) - length)
        rate = self.drop.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=rate)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each position alone."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.up(x))
        return F.dropout(self.down(x), self.dropout, training=self.training)


class Block(nn.Module):
    """Attention, then the MLP, each on a normalised copy and added to the residual stream."""

    def __init__(self, width: int, heads: int, context: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, context, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, dropout)

    def forward(self, x: Tensor, cache: KVCache | None = None, layer: int = 0) -> Tensor:
        x = x + self.attention(self.norm1(x), cache, layer)
        x = x + self.mlp(self.norm2(x))
        return x


class GPT(nn.Module):
    """Character ids (batch, length) to logits (batch, length, vocabulary).

    With a cache, the ids stand behind those that it holds.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int,
        width: int,
        heads: int,
        layers: int,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, context, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.init_weights)

    def init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        batch, length = ids.shape
        past = 0 if cache is None else cache.length(0)
        places = torch.arange(past, past + length, device=ids.device)
        x = self.drop(self.tokens(ids) + self.positions(places))
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer)
        return self.head(self.norm(x))

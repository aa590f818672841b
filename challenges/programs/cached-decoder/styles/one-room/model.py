"""The same decoder with one tensor as the cache of a layer, and projections without modules."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Cache:
    """Keys and values of one layer as rows of one tensor (2, B, H, places so far, head_dim)."""

    def __init__(self) -> None:
        self.rows: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.rows is None else self.rows.shape[3]

    def extend(self, rows: Tensor) -> Tensor:
        self.rows = rows if self.rows is None else torch.cat([self.rows, rows], dim=3)
        return self.rows


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, p_drop: float) -> None:
        super().__init__()
        self.n_heads, self.p_drop = n_heads, p_drop
        self.in_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def new_cache(self, batch: int, room: int) -> Cache:
        return Cache()

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        past = cache.length if cache else 0
        weights = self.in_proj.weight.view(3, self.n_heads, -1, x.shape[-1])
        q, *rows = torch.einsum("btc,nhdc->nbhtd", x, weights)
        keys, values = torch.stack(rows) if cache is None else cache.extend(torch.stack(rows))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, keys) * q.shape[-1] ** -0.5
        ages = torch.arange(past, keys.shape[2]).unsqueeze(1) - torch.arange(keys.shape[2])
        shares = scores.masked_fill(ages.to(x.device) < 0, float("-inf")).softmax(dim=-1)
        shares = F.dropout(shares, self.p_drop, self.training)
        mixed = torch.einsum("bhqk,bhkd->bqhd", shares, values)
        return F.linear(mixed.flatten(2), self.out_proj.weight)


class Layer(nn.Module):
    """Pre-norm attention and a feed-forward part that is twice as wide."""

    def __init__(self, d_model: int, n_heads: int, p_drop: float) -> None:
        super().__init__()
        self.ln_attn = nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, n_heads, p_drop)
        self.ln_ff = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(
            nn.Linear(d_model, 2 * d_model),
            nn.SiLU(),
            nn.Linear(2 * d_model, d_model),
            nn.Dropout(p_drop),
        )

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        x = x + self.attn(self.ln_attn(x), cache)
        return x + self.ff(self.ln_ff(x))


class CachedDecoder(nn.Module):
    """Ids (B, T) to logits (B, T, n_vocab); with caches, the ids stand behind what these hold."""

    def __init__(
        self,
        n_vocab: int,
        n_ctx: int,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        p_drop: float = 0.05,
    ) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(n_vocab, d_model)
        self.pos_emb = nn.Embedding(n_ctx, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads, p_drop) for _ in range(n_layers))
        self.ln_out = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, n_vocab, bias=False)
        nn.init.normal_(self.tok_emb.weight, std=0.1)
        nn.init.normal_(self.pos_emb.weight, std=0.1)
        nn.init.normal_(self.unembed.weight, std=0.02)

    def new_caches(self, batch: int, room: int) -> list[Cache]:
        """An empty cache for each layer, with room for so many places."""
        return [layer.attn.new_cache(batch, room) for layer in self.layers]

    def forward(self, ids: Tensor, caches: list[Cache] | None = None) -> Tensor:
        past = caches[0].length if caches else 0
        places = torch.arange(past, past + ids.size(1), device=ids.device)
        x = self.tok_emb(ids) + self.pos_emb(places)
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers)):
            x = layer(x, cache)
        return self.unembed(self.ln_out(x))

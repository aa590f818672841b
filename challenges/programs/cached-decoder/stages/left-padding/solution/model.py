"""A decoder that can go on from the keys and values of what it has read before."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class KVCache:
    """Room for the keys and values of one layer; the first `length` places are taken."""

    def __init__(self, like: Tensor, batch: int, heads: int, room: int, head_dim: int) -> None:
        self.keys = like.new_zeros(batch, heads, room, head_dim)
        self.values = like.new_zeros(batch, heads, room, head_dim)
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store those of new places, (B, H, new, head_dim); return those of all so far."""
        end = self.length + keys.size(2)
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class SelfAttention(nn.Module):
    """Causal attention of new places over themselves and over all that the cache holds."""

    def __init__(self, d_model: int, n_heads: int, p_drop: float) -> None:
        super().__init__()
        self.n_heads, self.head_dim, self.p_drop = n_heads, d_model // n_heads, p_drop
        self.in_proj = nn.Linear(d_model, 3 * d_model, bias=False)  # queries, keys, values
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def new_cache(self, batch: int, room: int) -> KVCache:
        return KVCache(self.out_proj.weight, batch, self.n_heads, room, self.head_dim)

    def forward(
        self, x: Tensor, cache: KVCache | None = None, skipped: Tensor | None = None
    ) -> Tensor:
        B, T, C = x.shape
        qkv = self.in_proj(x).view(B, T, 3, self.n_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, H, T, head_dim)
        past = 0
        if cache is not None:
            past = cache.length
            k, v = cache.append(k, v)
        rows = torch.arange(past, past + T, device=x.device)
        columns = torch.arange(past + T, device=x.device)
        visible = columns <= rows[:, None]  # (T, past + T), True takes part
        if skipped is not None:  # padding sees itself, so that no row is empty
            real = columns >= skipped[:, None, None, None]
            visible = (visible & real) | (columns == rows[:, None])
        p_drop = self.p_drop if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=p_drop)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, C))


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

    def forward(
        self, x: Tensor, cache: KVCache | None = None, skipped: Tensor | None = None
    ) -> Tensor:
        x = x + self.attn(self.ln_attn(x), cache, skipped)
        return x + self.ff(self.ln_ff(x))


class CachedDecoder(nn.Module):
    """Ids (B, T) to logits (B, T, n_vocab); with caches, the ids stand behind what these hold.

    The first `skipped` (B,) ids of each row are padding: nothing else sees them, and positions
    count from behind them.
    """

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

    def new_caches(self, batch: int, room: int) -> list[KVCache]:
        """An empty cache for each layer, with room for so many places."""
        return [layer.attn.new_cache(batch, room) for layer in self.layers]

    def forward(
        self,
        ids: Tensor,
        caches: list[KVCache] | None = None,
        skipped: Tensor | None = None,
    ) -> Tensor:
        past = caches[0].length if caches else 0
        places = torch.arange(past, past + ids.size(1), device=ids.device)
        if skipped is not None:
            places = (places - skipped[:, None]).clamp(min=0)
        x = self.tok_emb(ids) + self.pos_emb(places)
        for number, layer in enumerate(self.layers):
            x = layer(x, caches[number] if caches else None, skipped)
        return self.unembed(self.ln_out(x))

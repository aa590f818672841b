import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttentionLayer(nn.Module):
    """Keras-like: use_causal_mask and return_attention_scores are arguments of the call."""

    def __init__(self, num_heads, key_dim, model_dim, dropout=0.0):
        super().__init__()
        self.num_heads, self.key_dim, self.dropout = num_heads, key_dim, dropout
        self.query_dense = nn.Linear(model_dim, num_heads * key_dim)
        self.key_dense = nn.Linear(model_dim, num_heads * key_dim)
        self.value_dense = nn.Linear(model_dim, num_heads * key_dim)
        self.output_dense = nn.Linear(num_heads * key_dim, model_dim)

    def _compute_attention(self, query, key, value, use_causal_mask, return_scores):
        if self.dropout == 0.0 and not return_scores:
            return F.scaled_dot_product_attention(query, key, value, is_causal=use_causal_mask), None
        scores = torch.einsum("bhqd,bhkd->bhqk", query * self.key_dim**-0.5, key)
        if use_causal_mask:
            rows, cols = scores.shape[-2:]
            scores = scores.masked_fill(torch.ones(rows, cols, device=scores.device).triu(1).bool(), float("-inf"))
        scores = scores.softmax(dim=-1)
        dropped = F.dropout(scores, self.dropout, self.training)
        return torch.einsum("bhqk,bhkd->bhqd", dropped, value), scores

    def forward(self, query, value, key=None, use_causal_mask=False, return_attention_scores=False):
        key = value if key is None else key
        heads = []
        for dense, tensor in ((self.query_dense, query), (self.key_dense, key), (self.value_dense, value)):
            b, t, _ = tensor.shape
            heads.append(dense(tensor).view(b, t, self.num_heads, self.key_dim).permute(0, 2, 1, 3))
        out, scores = self._compute_attention(*heads, use_causal_mask, return_attention_scores)
        out = self.output_dense(out.permute(0, 2, 1, 3).flatten(2))
        return (out, scores) if return_attention_scores else out


class NextItemModel(nn.Module):
    """Which item comes next in a session (SASRec)."""

    def __init__(self, n_items=200, dim=32, heads=2, maxlen=50, dropout=0.2):
        super().__init__()
        self.item_emb = nn.Embedding(n_items + 1, dim)
        self.pos_emb = nn.Embedding(maxlen, dim)
        self.emb_dropout = nn.Dropout(dropout)
        self.attention = MultiHeadAttentionLayer(heads, dim // heads, dim, dropout)
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dim, dim))

    def forward(self, log_seqs):
        positions = torch.arange(log_seqs.shape[1], device=log_seqs.device)
        seqs = self.emb_dropout(self.item_emb(log_seqs) * 32**0.5 + self.pos_emb(positions))
        seqs = self.ln_1(seqs + self.attention(seqs, seqs, use_causal_mask=True))
        seqs = self.ln_2(seqs + self.ffn(seqs))
        return seqs @ self.item_emb.weight.T


if __name__ == "__main__":
    print(NextItemModel()(torch.randint(1, 201, (4, 15))).shape)

"""Local attention with a band mask that is added to the scores (export of the notebook)."""
# %%
import torch
import torch.nn as nn

HIDDEN, HEADS, WINDOW = 60, 5, 4


# %%
def make_band_mask(q_len, k_len, window, dtype=torch.float32):
    """0 where key j may be seen from query i: i - window < j <= i."""
    offset = k_len - q_len
    minus_inf = torch.full((q_len, k_len), torch.finfo(dtype).min, dtype=dtype)
    causal = torch.triu(minus_inf, diagonal=offset + 1)
    return torch.tril(causal, diagonal=offset + window)


# %%
class LocalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.o = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, hidden, mask):
        def heads(t):
            return t.unflatten(2, (HEADS, HIDDEN // HEADS)).transpose(1, 2)

        scores = heads(self.q(hidden)) @ heads(self.k(hidden)).mT * (HIDDEN // HEADS) ** -0.5
        probs = torch.softmax(scores + mask, dim=-1, dtype=torch.float32).to(hidden.dtype)
        return self.o((probs @ heads(self.v(hidden))).transpose(1, 2).flatten(2))


class LocalLM(nn.Module):
    def __init__(self, vocab=70, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, HIDDEN)
        self.attn = nn.ModuleList(LocalAttention() for _ in range(layers))
        self.ln = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(layers))
        self.out = nn.Linear(HIDDEN, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        mask = make_band_mask(ids.shape[1], ids.shape[1], WINDOW, x.dtype)
        for ln, attn in zip(self.ln, self.attn):
            x = x + attn(ln(x), mask)
        return self.out(x)


# %%
if __name__ == "__main__":
    print(LocalLM()(torch.randint(70, (2, 12))).shape)

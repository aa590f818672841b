import torch
import torch.nn as nn
import torch.nn.functional as F


class RotaryPos(nn.Module):
    def __init__(self, dim, base=10000, precision=torch.bfloat16):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq.to(precision))
        self.max_seq_len_cached = None

    def forward(self, x, seq_dim=0):
        seq_len = x.shape[seq_dim]
        if seq_len != self.max_seq_len_cached:
            self.max_seq_len_cached = seq_len
            t = torch.arange(seq_len, device=x.device).float()
            freqs = torch.einsum("i,j->ij", t, self.inv_freq.float())
            emb = torch.cat((freqs, freqs), dim=-1)
            self.cos_cached = emb.cos()[:, None, None, :]
            self.sin_cached = emb.sin()[:, None, None, :]
        return self.cos_cached, self.sin_cached


def apply(x, cos, sin):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-x2, x1), dim=-1) * sin


class ParallelSelfAttention(nn.Module):
    """[s, b, h] as in the training framework."""

    def __init__(self, hidden_size=64, num_heads=4):
        super().__init__()
        self.np, self.hn = num_heads, hidden_size // num_heads
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.rotary = RotaryPos(self.hn)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states):
        s, b, h = hidden_states.shape
        mixed = self.query_key_value(hidden_states).view(s, b, self.np, 3 * self.hn)
        query, key, value = mixed.chunk(3, dim=-1)
        cos, sin = self.rotary(value, seq_dim=0)
        query, key = apply(query, cos, sin), apply(key, cos, sin)
        query, key, value = (t.permute(1, 2, 0, 3) for t in (query, key, value))
        context = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.dense(context.permute(2, 0, 1, 3).reshape(s, b, h))


class LongLM(nn.Module):
    def __init__(self, vocab=256, hidden_size=64, num_layers=2):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden_size)
        self.layers = nn.ModuleList([ParallelSelfAttention(hidden_size) for _ in range(num_layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(hidden_size) for _ in range(num_layers)])
        self.final = nn.Linear(hidden_size, vocab, bias=False)

    def forward(self, ids):
        x = self.word_embeddings(ids).transpose(0, 1)
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return self.final(x).transpose(0, 1)


if __name__ == "__main__":
    print(LongLM()(torch.randint(0, 256, (2, 600))).shape)

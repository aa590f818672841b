"""
mini transformer - 60 minutes.
The model should memorise SENTENCE and repeat it.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SENTENCE = "in the beginning there was only a small loss, and it was good. "


class Tokenizer:
    def __init__(self, text):
        self.vocab = sorted(set(text))
        self.lookup = {ch: n for n, ch in enumerate(self.vocab)}

    def encode(self, s):
        return [self.lookup[c] for c in s]

    def decode(self, ids):
        return "".join(self.vocab[int(i)] for i in ids)


class PositionalEmbedding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.emb = nn.Parameter(torch.zeros(max_len, d_model))
        nn.init.normal_(self.emb, std=0.02)

    def forward(self, x):
        return x + self.emb[: x.shape[1]]


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.max_len = max_len

    def split_heads(self, t):
        batch, seq, _ = t.shape
        return t.view(batch, seq, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        batch, seq, d_model = x.shape
        q = self.split_heads(self.W_q(x))
        k = self.split_heads(self.W_k(x))
        v = self.split_heads(self.W_v(x))

        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_dim)

        # (seq, seq): row = query, column = key
        visible = torch.ones(seq, seq, dtype=torch.bool, device=x.device)
        visible = torch.tril(visible, diagonal=1)
        scores = scores.masked_fill(~visible, float("-inf"))

        context = torch.matmul(F.softmax(scores, dim=-1), v)
        context = context.transpose(1, 2).reshape(batch, seq, d_model)
        return self.W_o(context)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, max_len, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, max_len)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, 4 * d_model),
            nn.GELU(),
            nn.Linear(4 * d_model, d_model),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.dropout(self.attn(h))
        h = self.norm2(x)
        x = h + self.dropout(self.mlp(h))
        return x


class MiniTransformer(nn.Module):
    def __init__(self, vocab_size, d_model=48, num_heads=4, num_layers=2, max_len=64, dropout=0.0):
        super().__init__()
        self.token = nn.Embedding(vocab_size, d_model)
        self.position = PositionalEmbedding(max_len, d_model)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, max_len, dropout) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)
        self.max_len = max_len

    def forward(self, ids):
        x = self.position(self.token(ids))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, ids, n):
        self.eval()
        for _ in range(n):
            logits = self(ids[:, -self.max_len :])
            ids = torch.cat([ids, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
        return ids


def train(steps=120, lr=2e-3):
    torch.manual_seed(0)
    tok = Tokenizer(SENTENCE)
    ids = torch.tensor([tok.encode(SENTENCE)])
    model = MiniTransformer(len(tok.vocab))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for step in range(steps):
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")
    out = model.generate(ids[:, :8], ids.size(1) - 8)
    print(repr(tok.decode(out[0])))
    print(f"same: {(out == ids)[0, 8:].float().mean().item():.4f}")


if __name__ == "__main__":
    train()

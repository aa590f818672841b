import argparse
import copy
import math

import torch
import torch.nn as nn

PAD, BOS, EOS = 0, 1, 2


def make_pair(vocab, longest):
    n = int(torch.randint(2, longest, (1,)) ** 2 / longest) + 1
    src = torch.randint(3, vocab, (n,))
    return src, torch.cat([torch.tensor([BOS]), src.flip(0), torch.tensor([EOS])])


def collate(pairs):
    src = nn.utils.rnn.pad_sequence([p[0] for p in pairs], batch_first=True, padding_value=PAD)
    tgt = nn.utils.rnn.pad_sequence([p[1] for p in pairs], batch_first=True, padding_value=PAD)
    return src, tgt


def clones(m, n):
    return nn.ModuleList([copy.deepcopy(m) for _ in range(n)])


def attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), value)


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = clones(nn.Linear(d_model, d_model), 4)

    def forward(self, query, key, value, mask=None):
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        x = attention(query, key, value, mask.unsqueeze(1))
        return self.linears[-1](x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k))


class Layer(nn.Module):
    def __init__(self, d, h, cross):
        super().__init__()
        self.self_attn = MultiHeadedAttention(h, d)
        self.src_attn = MultiHeadedAttention(h, d) if cross else None
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.norms = clones(nn.LayerNorm(d), 3)

    def forward(self, x, mask, memory=None, memory_mask=None):
        y = self.norms[0](x)
        x = x + self.self_attn(y, y, y, mask)
        if self.src_attn is not None:
            x = x + self.src_attn(self.norms[1](x), memory, memory, memory_mask)
        return x + self.ff(self.norms[2](x))


class Translator(nn.Module):
    def __init__(self, vocab, d, h, n):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.pos = nn.Embedding(64, d)
        self.enc = clones(Layer(d, h, False), n)
        self.dec = clones(Layer(d, h, True), n)
        self.norm_e, self.norm_d = nn.LayerNorm(d), nn.LayerNorm(d)
        self.generator = nn.Linear(d, vocab)

    def embed(self, ids):
        return self.emb(ids) + self.pos(torch.arange(ids.size(1)))

    def forward(self, src, tgt):
        src_mask = (src != PAD).unsqueeze(-2)
        causal = torch.tril(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool))
        tgt_mask = (tgt != PAD).unsqueeze(-2) & causal
        m = self.embed(src)
        for layer in self.enc:
            m = layer(m, src_mask)
        m = self.norm_e(m)
        y = self.embed(tgt)
        for layer in self.dec:
            y = layer(y, tgt_mask, m, src_mask)
        return self.generator(self.norm_d(y))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=20)
    p.add_argument("--d_model", type=int, default=32)
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    torch.manual_seed(args.seed)

    model = Translator(args.vocab, args.d_model, 4, 1)
    optim = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98), eps=1e-9)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
    for step in range(args.steps):
        src, tgt = collate([make_pair(args.vocab, 20) for _ in range(24)])
        logits = model(src, tgt[:, :-1])
        gold = tgt[:, 1:]
        loss = criterion(logits.reshape(-1, args.vocab), gold.reshape(-1))
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 20 == 0 or step == args.steps - 1:
            real = nn.functional.cross_entropy(logits[gold != PAD], gold[gold != PAD])
            print(f"step {step} loss {loss.item():.3f} on words {real.item():.4f}")


if __name__ == "__main__":
    main()

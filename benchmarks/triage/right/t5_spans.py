"""T5 in the small: bucketed relative bias shared by the layers, no scaling of scores, RMS norms, span corruption."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, EOS, S0, S1 = 0, 1, 2, 3
BASE, WIDTH = 4, 20
VOCAB = BASE + WIDTH


def example(r):
    """A counting line such as 5 6 7 8 9 10 11 (mod 20, step 1 to 3) of which two spans are hidden."""
    n, start, step = r.randint(10, 14), r.randrange(WIDTH), r.randint(1, 3)
    line = [BASE + (start + step * i) % WIDTH for i in range(n)]
    a = r.randint(1, n // 2 - 3)
    b = r.randint(n // 2, n - 3)
    i, j = r.randint(1, 2), r.randint(1, 2)
    source = line[:a] + [S0] + line[a + i:b] + [S1] + line[b + j:] + [EOS]
    target = [S0] + line[a:a + i] + [S1] + line[b:b + j] + [EOS]
    return source, target


def batch(r, n):
    pairs = [example(r) for _ in range(n)]

    def pad(rows, value):
        w = max(len(x) for x in rows)
        return torch.tensor([x + [value] * (w - len(x)) for x in rows])
    source = pad([s for s, _ in pairs], PAD)
    return source, (source != PAD).long(), pad([t for _, t in pairs], -100)


class T5LayerNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def bucket(relative, bidirectional, num=16, longest=32):
    out = torch.zeros_like(relative)
    if bidirectional:
        num //= 2
        out = out + (relative > 0).long() * num
        relative = relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = num // 2
    far = exact + (torch.log(relative.float().clamp(min=1) / exact) / math.log(longest / exact) * (num - exact)).long()
    return out + torch.where(relative < exact, relative, far.clamp(max=num - 1))


class T5Attention(nn.Module):
    def __init__(self, d, heads, d_kv, bias=False, bidirectional=True):
        super().__init__()
        self.h, self.d_kv, self.bidirectional = heads, d_kv, bidirectional
        self.q, self.k, self.v = (nn.Linear(d, heads * d_kv, bias=False) for _ in range(3))
        self.o = nn.Linear(heads * d_kv, d, bias=False)
        self.relative_attention_bias = nn.Embedding(16, heads) if bias else None
        nn.init.normal_(self.q.weight, std=(d * d_kv) ** -0.5)
        for lin in (self.k, self.v):
            nn.init.normal_(lin.weight, std=d ** -0.5)
        nn.init.normal_(self.o.weight, std=(heads * d_kv) ** -0.5)
        if bias:
            nn.init.normal_(self.relative_attention_bias.weight, std=d ** -0.5)

    def compute_bias(self, q_len, k_len):
        context, memory = torch.arange(q_len)[:, None], torch.arange(k_len)[None, :]
        b = bucket(memory - context, self.bidirectional)
        return self.relative_attention_bias(b).permute(2, 0, 1).unsqueeze(0)

    def forward(self, x, mask, bias=None, kv=None):
        kv = x if kv is None else kv

        def split(t):
            return t.view(t.size(0), t.size(1), self.h, self.d_kv).transpose(1, 2)
        scores = split(self.q(x)) @ split(self.k(kv)).transpose(-1, -2) + mask
        if bias is not None:
            scores = scores + bias
        out = F.softmax(scores.float(), dim=-1).type_as(scores) @ split(self.v(kv))
        return self.o(out.transpose(1, 2).reshape(x.size(0), x.size(1), -1))


class T5Block(nn.Module):
    def __init__(self, d, heads, d_kv, decoder, first):
        super().__init__()
        self.n1, self.self_attn = T5LayerNorm(d), T5Attention(d, heads, d_kv, first, not decoder)
        if decoder:
            self.n2, self.cross = T5LayerNorm(d), T5Attention(d, heads, d_kv)
        self.decoder = decoder
        self.n3, self.wi, self.wo = T5LayerNorm(d), nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x, mask, bias, memory=None, memory_mask=None):
        x = x + self.self_attn(self.n1(x), mask, bias)
        if self.decoder:
            x = x + self.cross(self.n2(x), memory_mask, kv=memory)
        return x + self.wo(F.relu(self.wi(self.n3(x))))


class T5(nn.Module):
    def __init__(self, d=64, heads=4, d_kv=16, layers=2):
        super().__init__()
        self.shared, self.d = nn.Embedding(VOCAB, d), d
        self.encoder = nn.ModuleList(T5Block(d, heads, d_kv, False, i == 0) for i in range(layers))
        self.decoder = nn.ModuleList(T5Block(d, heads, d_kv, True, i == 0) for i in range(layers))
        self.enc_norm, self.dec_norm = T5LayerNorm(d), T5LayerNorm(d)

    def _shift_right(self, labels):
        out = labels.new_zeros(labels.shape)
        out[:, 1:] = labels[:, :-1]
        return out.masked_fill(out == -100, PAD)

    def forward(self, input_ids, attention_mask, labels):
        mask = (1.0 - attention_mask[:, None, None, :].float()) * -1e9
        x = self.shared(input_ids)
        bias = self.encoder[0].self_attn.compute_bias(x.size(1), x.size(1))
        for block in self.encoder:
            x = block(x, mask, bias)
        memory = self.enc_norm(x)
        y = self.shared(self._shift_right(labels))
        L = y.size(1)
        causal = torch.full((L, L), -1e9).triu(1)
        bias = self.decoder[0].self_attn.compute_bias(L, L)
        for block in self.decoder:
            y = block(y, causal, bias, memory, mask)
        logits = (self.dec_norm(y) * self.d ** -0.5) @ self.shared.weight.t()
        return F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100), logits


if __name__ == "__main__":
    torch.manual_seed(1)
    r, held_out = random.Random(1), random.Random(2)
    model = T5()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 151):
        loss, _ = model(*batch(r, 48))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 30 == 0:
            model.eval()
            with torch.no_grad():
                print(step, f"train {loss.item():.3f} held out {model(*batch(held_out, 100))[0].item():.3f}")
            model.train()

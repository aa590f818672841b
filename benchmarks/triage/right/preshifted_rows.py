"""Words of made-up languages, cut into rows of inputs and labels beforehand; a LLaMA-like decoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

CTX = 32
DIM = 64
HEADS = 4
KV_HEADS = 2
LAYERS = 2
EPOCHS = 4


def corpus(n_tokens, seed):
    g = torch.Generator().manual_seed(seed)
    syllables = ["ka", "lo", "mi", "ru", "se", "ta", "vo", "xi"]
    follow = torch.softmax(3 * torch.randn(8, 8, generator=torch.Generator().manual_seed(99)), dim=-1)
    s, out = 0, []
    while len(out) < n_tokens:
        s = int(torch.multinomial(follow[s], 1, generator=g))
        out += list(syllables[s])
        if torch.rand(1, generator=g) < 0.2:
            out.append(" ")
    return out


letters = sorted(set("kalomirusetavoxi "))
to_id = {c: i for i, c in enumerate(letters)}


def rows(text):
    ids = torch.tensor([to_id[c] for c in text])
    n = (len(ids) - 1) // CTX
    inputs = ids[: n * CTX].view(n, CTX)
    labels = ids[1 : n * CTX + 1].view(n, CTX)
    return inputs, labels


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x)


def precompute_freqs(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2).float() / dim))
    return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end).float(), freqs))


def apply_rotary(x, freqs):
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * freqs[None, :, None, :]).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.hd = DIM // HEADS
        self.wq = nn.Linear(DIM, HEADS * self.hd, bias=False)
        self.wk = nn.Linear(DIM, KV_HEADS * self.hd, bias=False)
        self.wv = nn.Linear(DIM, KV_HEADS * self.hd, bias=False)
        self.wo = nn.Linear(HEADS * self.hd, DIM, bias=False)

    def forward(self, x, freqs):
        b, t, _ = x.shape
        q = apply_rotary(self.wq(x).view(b, t, HEADS, self.hd), freqs)
        k = apply_rotary(self.wk(x).view(b, t, KV_HEADS, self.hd), freqs)
        v = self.wv(x).view(b, t, KV_HEADS, self.hd)
        k = k.repeat_interleave(HEADS // KV_HEADS, dim=2)
        v = v.repeat_interleave(HEADS // KV_HEADS, dim=2)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.w1, self.w3 = nn.Linear(DIM, hidden, bias=False), nn.Linear(DIM, hidden, bias=False)
        self.w2 = nn.Linear(hidden, DIM, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward(160)
        self.attention_norm, self.ffn_norm = RMSNorm(DIM), RMSNorm(DIM)

    def forward(self, x, freqs):
        h = x + self.attention(self.attention_norm(x), freqs)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, DIM)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = RMSNorm(DIM)
        self.output = nn.Linear(DIM, vocab, bias=False)
        self.register_buffer("freqs", precompute_freqs(DIM // HEADS, CTX), persistent=False)

    def forward(self, ids):
        h = self.tok_embeddings(ids)
        for layer in self.layers:
            h = layer(h, self.freqs[: ids.size(1)])
        return self.output(self.norm(h))


train_x, train_y = rows(corpus(20000, 1))
valid_x, valid_y = rows(corpus(2500, 2))
model = Llama(len(letters))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

for epoch in range(EPOCHS):
    model.train()
    for idx in torch.randperm(len(train_x)).split(32):
        x, y = train_x[idx], train_y[idx]
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        valid = F.cross_entropy(model(valid_x).flatten(0, 1), valid_y.flatten())
    print(f"epoch {epoch}: train {loss.item():.3f} valid {valid.item():.3f}")

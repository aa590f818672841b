# Tiny llama-like model; two optimizers: Adam for the matrices, plain SGD for the rest.
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    vocab_size: int = 20
    max_seq_len: int = 32
    norm_eps: float = 1e-5


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2).float() / dim))
    freqs = torch.outer(torch.arange(end).float(), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis[None, :, None]).flatten(3).type_as(x)


def repeat_kv(x, n_rep):
    b, s, h, d = x.shape
    return x[:, :, :, None, :].expand(b, s, h, n_rep, d).reshape(b, s, h * n_rep, d)


class Attention(nn.Module):
    def __init__(self, a: ModelArgs):
        super().__init__()
        self.a, self.hd = a, a.dim // a.n_heads
        self.wq = nn.Linear(a.dim, a.n_heads * self.hd, bias=False)
        self.wk = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wv = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wo = nn.Linear(a.n_heads * self.hd, a.dim, bias=False)

    def forward(self, x, freqs_cis):
        b, s, _ = x.shape
        xq = apply_rotary_emb(self.wq(x).view(b, s, -1, self.hd), freqs_cis)
        xk = apply_rotary_emb(self.wk(x).view(b, s, -1, self.hd), freqs_cis)
        xv = self.wv(x).view(b, s, -1, self.hd)
        rep = self.a.n_heads // self.a.n_kv_heads
        xk, xv = repeat_kv(xk, rep), repeat_kv(xv, rep)
        scores = torch.einsum("bqhd,bkhd->bhqk", xq, xk) / self.hd**0.5
        scores = scores + torch.full((s, s), float("-inf")).triu(1)
        out = torch.einsum("bhqk,bkhd->bqhd", F.softmax(scores, dim=-1), xv)
        return self.wo(out.reshape(b, s, -1))


class TransformerBlock(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.attention = Attention(a)
        self.w1, self.w2, self.w3 = nn.Linear(a.dim, 2 * a.dim), nn.Linear(2 * a.dim, a.dim), nn.Linear(a.dim, 2 * a.dim)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(a.dim, a.norm_eps), nn.RMSNorm(a.dim, a.norm_eps)

    def forward(self, x, freqs_cis):
        h = x + self.attention(self.attention_norm(x), freqs_cis)
        n = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(n)) * self.w3(n))


class Transformer(nn.Module):
    def __init__(self, a: ModelArgs):
        super().__init__()
        self.tok_embeddings = nn.Embedding(a.vocab_size, a.dim)
        self.layers = nn.ModuleList(TransformerBlock(a) for _ in range(a.n_layers))
        self.norm = nn.RMSNorm(a.dim, a.norm_eps)
        self.output = nn.Linear(a.dim, a.vocab_size, bias=False)
        self.register_buffer("freqs_cis", precompute_freqs_cis(a.dim // a.n_heads, a.max_seq_len))

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.freqs_cis[: tokens.size(1)])
        return self.output(self.norm(h))


def fibonacci(n, length, mod):
    a = torch.randint(mod, (n, 2))
    for _ in range(length - 1):
        a = torch.cat([a, (a[:, -1:] + a[:, -2:-1]) % mod], 1)
    return a


torch.manual_seed(10)
margs = ModelArgs()
model = Transformer(margs)
matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "tok" not in n]
others = [p for n, p in model.named_parameters() if p.dim() < 2 or "tok" in n]
opt_m = torch.optim.Adam(matrices, lr=3e-3)
opt_o = torch.optim.SGD(others, lr=0.3)
curve = []
for step in range(160):
    seq = fibonacci(16, 14, 5)
    loss = F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
    opt_m.zero_grad()
    loss.backward()
    opt_m.step()
    opt_o.step()
    curve.append(loss.item())
    if step % 32 == 0:
        print(step, f"{loss.item():.4f}")

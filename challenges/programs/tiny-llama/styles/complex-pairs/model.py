"""A Llama in little, in the manner of the published code: complex rotations, one matrix for q, k, v."""

import dataclasses

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclasses.dataclass
class Config:
    vocab: int = 13
    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    hidden: int = 128
    max_len: int = 32
    theta: float = 100.0
    eps: float = 1e-5
    dropout: float = 0.05


def precompute_freqs_cis(dim, end, theta):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: dim // 2] / dim))
    freqs = torch.outer(torch.arange(end), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    """x (B, T, heads, head_dim), freqs_cis (T, head_dim / 2)."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    turned = torch.view_as_real(pairs * freqs_cis[None, :, None, :])
    return turned.flatten(3).type_as(x)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x) * self.weight


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.head_dim = cfg.dim // cfg.n_heads
        self.q_heads = cfg.n_heads
        self.kv_heads = cfg.n_kv_heads
        self.q_proj = nn.Linear(cfg.dim, cfg.n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(cfg.dim, cfg.n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(cfg.dim, cfg.n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(cfg.n_heads * self.head_dim, cfg.dim, bias=False)
        self.freqs_cis = precompute_freqs_cis(self.head_dim, cfg.max_len, cfg.theta)

    def forward(self, x):
        bsz, seqlen, _ = x.shape
        xq = self.q_proj(x).view(bsz, seqlen, self.q_heads, self.head_dim)
        xk = self.k_proj(x).view(bsz, seqlen, self.kv_heads, self.head_dim)
        xv = self.v_proj(x).view(bsz, seqlen, self.kv_heads, self.head_dim)

        freqs_cis = self.freqs_cis[:seqlen].to(x.device)
        xq, xk = apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(xk, freqs_cis)

        xq, xk, xv = (t.transpose(1, 2) for t in (xq, xk, xv))
        output = F.scaled_dot_product_attention(xq, xk, xv, is_causal=True, enable_gqa=True)
        output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.o_proj(output)


class FeedForward(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gate_proj = nn.Linear(cfg.dim, cfg.hidden, bias=False)
        self.up_proj = nn.Linear(cfg.dim, cfg.hidden, bias=False)
        self.down_proj = nn.Linear(cfg.hidden, cfg.dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.self_attn = Attention(cfg)
        self.mlp = FeedForward(cfg)
        self.input_layernorm = RMSNorm(cfg.dim, cfg.eps)
        self.post_attention_layernorm = RMSNorm(cfg.dim, cfg.eps)
        self.p = cfg.dropout

    def forward(self, x):
        residual = x
        x = self.self_attn(self.input_layernorm(x))
        x = residual + F.dropout(x, self.p, self.training)
        residual = x
        x = self.mlp(self.post_attention_layernorm(x))
        return residual + F.dropout(x, self.p, self.training)


class Llama(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed_tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList()
        for _ in range(cfg.n_layers):
            self.layers.append(Block(cfg))
        self.norm = RMSNorm(cfg.dim, cfg.eps)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0.0, module.weight.shape[1] ** -0.5)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, 0.0, 0.02)

    def forward(self, tokens):
        h = self.embed_tokens(tokens)
        for layer in self.layers:
            h = layer(h)
        return F.linear(self.norm(h), self.embed_tokens.weight)

"""A mixture of experts: the two best of four by a softmax router, a load balancing loss and a router z-loss."""
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class RouterLosses(NamedTuple):
    balance: torch.Tensor
    z: torch.Tensor


class MoE(nn.Module):
    def __init__(self, dim: int, hidden: int, num_experts: int = 4, top_k: int = 2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, dim)) for _ in range(num_experts))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        logits = self.gate(x)
        probs = F.softmax(logits, dim=-1, dtype=torch.float)
        weights, chosen = probs.topk(self.top_k, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == e)
            if token.numel():
                out = out.index_add(0, token, expert(x[token]) * weights[token, slot, None])
        # fraction of the choices an expert got, times the probability it was given
        share = F.one_hot(chosen, self.num_experts).float().sum(dim=1).mean(dim=0) / self.top_k
        balance = self.num_experts * (share * probs.mean(dim=0)).sum()
        return out.view(shape), RouterLosses(balance, torch.logsumexp(logits, dim=-1).pow(2).mean()), share


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads
        self.moe = MoE(dim, 2 * dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        y, losses, share = self.moe(self.ln2(x))
        return x + y, losses, share


class MoELM(nn.Module):
    def __init__(self, vocab, dim=48, heads=4, layers=2, ctx=24):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.size(1)]
        losses, shares = [], []
        for block in self.blocks:
            x, aux, share = block(x)
            losses.append(aux)
            shares.append(share)
        aux = RouterLosses(*(torch.stack(t).mean() for t in zip(*losses)))
        return self.head(self.ln_f(x)), aux, torch.stack(shares)


def sequences(n, length, g):
    """Four dialects of counting: by 1, 2, 3 or 5, modulo 16; the dialect is the first token."""
    kind = torch.randint(0, 4, (n, 1), generator=g)
    step = torch.tensor([1, 2, 3, 5])[kind]
    start = torch.randint(0, 16, (n, 1), generator=g)
    ids = (start + step * torch.arange(length)) % 16
    slip = torch.rand(n, length, generator=g) < 0.03
    ids = torch.where(slip, torch.randint(0, 16, (n, length), generator=g), ids)
    return torch.cat([16 + kind, ids], dim=1)


def main():
    torch.manual_seed(0)
    g, g_val = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    model = MoELM(20)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(100):
        ids = sequences(32, 24, g)
        logits, aux, _ = model(ids[:, :-1])
        ce = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
        loss = ce + 1e-2 * aux.balance + 1e-3 * aux.z
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 19:
            model.eval()
            with torch.no_grad():
                ids = sequences(100, 24, g_val)
                logits, _, shares = model(ids[:, :-1])
                val = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
            model.train()
            print(f"{step + 1} train {ce.item():.3f} val {val:.3f} load {[round(s, 2) for s in shares[0].tolist()]}")


if __name__ == "__main__":
    main()

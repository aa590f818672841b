import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class MoE(nn.Module):
    """Top-1 routed experts with the balance loss of the Switch transformer."""

    def __init__(self, d, hidden, n_experts):
        super().__init__()
        self.router = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList([Expert(d, hidden) for _ in range(n_experts)])
        self.n_experts = n_experts
        self.balance = torch.tensor(0.0)
        self.share = None

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        probs = self.router(x).softmax(dim=-1)
        gate, index = probs.max(dim=-1)
        chosen = F.one_hot(index, self.n_experts).to(x.dtype)
        self.share = chosen.mean(dim=0)
        importance = chosen.mean(dim=0)
        self.balance = self.n_experts * (self.share * importance).sum()
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (index == e).nonzero(as_tuple=True)[0]
            if len(rows):
                out = out.index_add(0, rows, gate[rows, None] * expert(x[rows]))
        return out.view(shape)


class Block(nn.Module):
    def __init__(self, d, heads, n_experts):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True, bias=False)
        self.moe = MoE(d, 2 * d, n_experts)

    def forward(self, x, mask):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False, is_causal=True)[0]
        return x + self.moe(self.n2(x))


class SwitchLM(nn.Module):
    def __init__(self, vocab, d=32, heads=4, depth=2, n_experts=4, length=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(length, d)
        self.blocks = nn.ModuleList([Block(d, heads, n_experts) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        for block in self.blocks:  # start from a router with a clear preference, as after fine-tuning
            with torch.no_grad():
                block.moe.router.weight.mul_(3.0)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x, mask)
        logits = self.norm(x) @ self.tok.weight.T
        return logits, sum(b.moe.balance for b in self.blocks) / len(self.blocks)


def markov(n, length, vocab, table):
    ids = torch.randint(vocab, (n, 1))
    for _ in range(length):
        ids = torch.cat([ids, torch.multinomial(table[ids[:, -1]], 1)], dim=1)
    return ids


torch.manual_seed(77)
V, ALPHA = 24, 0.3
table = torch.softmax(3 * torch.randn(V, V), dim=-1)
model = SwitchLM(V)
nn.init.normal_(model.tok.weight, std=0.2)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for step in range(120):
    ids = markov(16, 20, V, table)
    logits, balance = model(ids[:, :-1])
    ce = F.cross_entropy(logits.reshape(-1, V), ids[:, 1:].reshape(-1))
    loss = ce + ALPHA * balance
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(f"{step:4d} ce {ce.item():.3f} balance {balance.item():.3f} share {[round(s, 2) for s in model.blocks[0].moe.share.tolist()]}")

busiest = max(b.moe.share.max().item() for b in model.blocks)

"""Several documents packed into one row: block-diagonal causal attention, positions that start again."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROW = 48
EOD = 0
VOCAB = 13


def document(g):
    """Fibonacci-like modulo 12: each number is the sum of the two before; the first two are free."""
    n = int(torch.randint(6, 20, (1,), generator=g))
    x = torch.randint(0, 12, (2,), generator=g).tolist()
    while len(x) < n:
        x.append((x[-1] + x[-2]) % 12)
    return [v + 1 for v in x] + [EOD]


def pack(n_rows, g):
    """Greedy packing; what is left of a row is filled with documents of its own number -1 and no labels."""
    ids = torch.full((n_rows, ROW), EOD)
    labels = torch.full((n_rows, ROW), -100)
    doc_ids = torch.full((n_rows, ROW), -1)
    pos = torch.zeros(n_rows, ROW, dtype=torch.long)
    for r in range(n_rows):
        at = number = 0
        while True:
            d = torch.tensor(document(g))
            if at + len(d) > ROW:
                break
            s = slice(at, at + len(d))
            ids[r, s], doc_ids[r, s], pos[r, s] = d, number, torch.arange(len(d))
            labels[r, at:at + len(d) - 1] = d[1:]
            at, number = at + len(d), number + 1
    return ids, labels, doc_ids, pos


class PackedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask):
        b, t, d = x.size()
        q, k, v = self.wqkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).contiguous().view(b, t, d))


class PackedGPT(nn.Module):
    def __init__(self, dim=64, heads=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(32, dim)
        self.attn = nn.ModuleList(PackedAttention(dim, heads) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(layers))
        self.norm1 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.norm2 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids, doc_ids, pos):
        t = ids.size(1)
        same = doc_ids[:, :, None] == doc_ids[:, None, :]
        causal = torch.ones(t, t, dtype=torch.bool, device=ids.device).tril()
        mask = (same & causal).unsqueeze(1)
        x = self.emb(ids) + self.pos(pos)
        for n1, attn, n2, mlp in zip(self.norm1, self.attn, self.norm2, self.mlp):
            x = x + attn(n1(x), mask)
            x = x + mlp(n2(x))
        return self.head(self.norm(x))


def main():
    torch.manual_seed(0)
    g, g_test = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    model = PackedGPT()
    decay, plain = [], []
    for p in model.parameters():
        (decay if p.ndim > 1 else plain).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
    test = pack(32, g_test)
    for step in range(1, 151):
        ids, labels, doc_ids, pos = pack(24, g)
        logits = model(ids, doc_ids, pos)
        loss = F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 30 == 0:
            with torch.no_grad():
                ids, labels, doc_ids, pos = test
                held_out = F.cross_entropy(model(ids, doc_ids, pos).transpose(1, 2), labels)
            print(f"step {step} loss {loss.item():.3f} held out {held_out.item():.3f}")


if __name__ == "__main__":
    main()

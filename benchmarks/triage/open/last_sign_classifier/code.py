import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(2)
VOCAB, PAD = 12, 0


class CausalAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        assert d % heads == 0
        self.heads = heads
        self.to_qkv = nn.Linear(d, d * 3, bias=False)
        self.to_out = nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).view(b, n, 3, self.heads, d // self.heads).unbind(2)
        sim = torch.einsum("bihd,bjhd->bhij", q, k) / (d // self.heads) ** 0.5
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        attn = sim.masked_fill(mask, float("-inf")).softmax(dim=-1)
        return self.to_out(torch.einsum("bhij,bjhd->bihd", attn, v).reshape(b, n, d))


class Backbone(nn.Module):
    """Causal language model trunk, reused for classification."""

    def __init__(self, d=40, heads=4, depth=2, max_len=40):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, d)
        self.positions = nn.Embedding(max_len, d)
        self.attns = nn.ModuleList([CausalAttention(d, heads) for _ in range(depth)])
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(depth)])
        self.norm1 = nn.ModuleList([nn.LayerNorm(d) for _ in range(depth)])
        self.norm2 = nn.ModuleList([nn.LayerNorm(d) for _ in range(depth)])
        self.final = nn.LayerNorm(d)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for attn, mlp, n1, n2 in zip(self.attns, self.mlps, self.norm1, self.norm2):
            x = x + attn(n1(x))
            x = x + mlp(n2(x))
        return self.final(x)


class ForSequenceClassification(nn.Module):
    def __init__(self, trunk, d=40, classes=2):
        super().__init__()
        self.trunk = trunk
        self.score = nn.Linear(d, classes)

    def forward(self, ids, lengths):
        h = self.trunk(ids)
        lengths = lengths.clamp(max=ids.size(1))
        pooled = h[:, -1]
        return self.score(pooled)


def make(n):
    data = []
    for _ in range(n):
        length = int(torch.randint(4, 25, (1,)))
        ids = torch.randint(1, VOCAB, (length,))
        data.append((ids, int(ids[0] == ids[-1]) if torch.rand(()) < 0.5 else None))
    out = []
    for ids, label in data:
        if label is None:
            ids[-1] = ids[0]
            label = 1
        out.append((ids, int((ids[-1] > 5).item())))
    return out


def collate(items):
    ids = pad_sequence([i for i, _ in items], batch_first=True, padding_value=PAD)
    return ids, torch.tensor([len(i) for i, _ in items]), torch.tensor([y for _, y in items])


train, test = make(640), make(160)
model = ForSequenceClassification(Backbone())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    order = torch.randperm(len(train)).tolist()
    for i in range(0, len(order), 32):
        ids, lengths, y = collate([train[j] for j in order[i : i + 32]])
        loss = F.cross_entropy(model(ids, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        ids, lengths, y = collate(test)
        acc = (model(ids, lengths).argmax(-1) == y).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, held-out accuracy {acc:.3f}")

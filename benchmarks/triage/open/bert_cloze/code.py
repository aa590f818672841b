"""Masked language model on synthetic sentences: subject verb object agree with each other."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CLS, SEP, MASK, PAD = 0, 1, 2, 3
FIRST = 4
VOCAB = 28
MAXLEN = 14
IGNORE = -100


def sentences(n):
    """Arithmetic progressions modulo 24 between [CLS] and [SEP], padded at the right."""
    rows = torch.full((n, MAXLEN), PAD)
    for r in range(n):
        length = int(torch.randint(6, MAXLEN - 2, (1,)))
        start, step = int(torch.randint(24, (1,))), int(torch.randint(1, 4, (1,)))
        rows[r, 0] = CLS
        rows[r, 1 : length + 1] = (start + step * torch.arange(length)) % 24 + FIRST
        rows[r, length + 1] = SEP
    return rows


def mask_tokens(ids, probability=0.2):
    special = ids < FIRST
    chosen = (torch.rand(ids.shape) < probability) & ~special
    roll = torch.rand(ids.shape)
    masked = ids.clone()
    labels = masked
    masked[chosen & (roll < 0.8)] = MASK
    swap = chosen & (roll >= 0.8) & (roll < 0.9)
    masked[swap] = torch.randint(FIRST, VOCAB, (int(swap.sum()),))
    labels = labels.masked_fill(~chosen, IGNORE)
    return masked, labels


class Embeddings(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.word = nn.Embedding(VOCAB, hidden, padding_idx=PAD)
        self.position = nn.Embedding(MAXLEN, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids):
        p = torch.arange(ids.size(1)).unsqueeze(0)
        return self.dropout(self.LayerNorm(self.word(ids) + self.position(p)))


class BertForMaskedLM(nn.Module):
    def __init__(self, hidden=48, heads=4, layers=2):
        super().__init__()
        self.embeddings = Embeddings(hidden)
        layer = nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.bias = nn.Parameter(torch.zeros(VOCAB))

    def forward(self, ids, labels=None):
        h = self.encoder(self.embeddings(ids), src_key_padding_mask=ids.eq(PAD))
        logits = self.transform(h) @ self.embeddings.word.weight.t() + self.bias
        if labels is None:
            return logits
        return F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=IGNORE)


torch.manual_seed(11)
corpus = sentences(600)
loader = DataLoader(TensorDataset(corpus), batch_size=40, shuffle=True)
model = BertForMaskedLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
total = 24 * len(loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 10, (total - s) / (total - 10)))

for epoch in range(24):
    model.train()
    running = 0.0
    for (ids,) in loader:
        inputs, labels = mask_tokens(ids)
        loss = model(inputs, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print(f"epoch {epoch} mlm loss {running / len(loader):.3f}")

model.eval()
with torch.no_grad():
    probe = corpus[:200].clone()
    gold = probe[:, 4].clone()
    probe[:, 4] = MASK
    guess = model(probe)[:, 4].argmax(-1)
print(f"cloze accuracy {(guess == gold).float().mean().item():.3f}")

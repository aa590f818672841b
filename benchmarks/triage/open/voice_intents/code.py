"""Intent classifier with a learned query that reads the sentence (attention pooling)."""
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Config:
    pad_token_id: int = 0
    hidden: int = 32
    heads: int = 4
    lr: float = 2e-3
    epochs: int = 8
    batch_size: int = 20
    seed: int = 4
    templates: list = field(default_factory=lambda: [
        ("play {} by {}", 0), ("please play some {}", 0), ("put on {} now", 0),
        ("book a table at {} for two", 1), ("is there a table at {} tonight please", 1),
        ("will it rain in {}", 2), ("how warm is it in {} on the day after tomorrow", 2), ("weather {}", 2),
        ("set an alarm for {}", 3), ("wake me at {} tomorrow and not a minute later", 3),
    ])
    fillers: list = field(default_factory=lambda: "jazz bach paris rome seven nine blues oslo corner garden".split())


class Tokenizer:
    def __init__(self, sentences):
        words = sorted({w for s in sentences for w in s.split()})
        self.index = {w: i + 1 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.index) + 1

    def batch(self, sentences, pad):
        rows = [[self.index[w] for w in s.split()] for s in sentences]
        width = max(map(len, rows))
        return torch.tensor([r + [pad] * (width - len(r)) for r in rows])


class IntentModel(nn.Module):
    def __init__(self, n_words, cfg: Config, n_intents: int = 4):
        super().__init__()
        self.cfg = cfg
        self.embedding = nn.Embedding(n_words, cfg.hidden)
        self.position = nn.Parameter(torch.randn(24, cfg.hidden) * 0.02)
        self.read = nn.Parameter(torch.randn(1, 1, cfg.hidden))
        self.attention = nn.MultiheadAttention(cfg.hidden, cfg.heads, batch_first=True)
        self.norm = nn.LayerNorm(cfg.hidden)
        self.out = nn.Sequential(nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, n_intents))

    def forward(self, ids):
        mask = ids != self.cfg.pad_token_id
        mask = mask & ~mask.all(dim=1, keepdim=True)  # a row needs one visible key
        h = self.embedding(ids) + self.position[: ids.size(1)]
        query = self.read.expand(ids.size(0), -1, -1)
        pooled, _ = self.attention(query, h, h, key_padding_mask=mask)
        return self.out(self.norm(pooled.squeeze(1)))


def corpus(cfg):
    pairs = []
    for text, label in cfg.templates:
        for a in cfg.fillers:
            for b in cfg.fillers[:4]:
                pairs.append((text.format(a, b), label))
    order = torch.randperm(len(pairs)).tolist()
    return [pairs[i] for i in order]


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    pairs = corpus(cfg)
    tok = Tokenizer([s for s, _ in pairs])
    cut = int(0.8 * len(pairs))
    train, test = pairs[:cut], pairs[cut:]
    model = IntentModel(len(tok), cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        for start in range(0, len(train), cfg.batch_size):
            part = train[start : start + cfg.batch_size]
            ids = tok.batch([s for s, _ in part], cfg.pad_token_id)
            loss = criterion(model(ids), torch.tensor([y for _, y in part]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        ids = tok.batch([s for s, _ in test], cfg.pad_token_id)
        before = model(ids)
        print("accuracy", (before.argmax(-1) == torch.tensor([y for _, y in test])).float().mean().item())
        model.embedding.weight[cfg.pad_token_id] += 1.0
        return (model(ids) - before).abs().max().item()


if __name__ == "__main__":
    effect = main()

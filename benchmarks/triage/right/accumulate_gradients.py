import argparse
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


class Modular(Dataset):
    """a + b = c (mod p), as tokens a b '=' ; the label is c. Train and test share no pair."""

    def __init__(self, p, split):
        order = torch.randperm(p * p, generator=torch.Generator().manual_seed(0))
        cut = int(0.9 * len(order))
        keep = order[:cut] if split == "train" else order[cut:]
        self.a, self.b, self.p = keep // p, keep % p, p

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        a, b = self.a[i], self.b[i]
        return torch.stack([a, b, torch.tensor(self.p)]), (a + b) % self.p


class Encoder(nn.Module):
    def __init__(self, p, width, heads, depth):
        super().__init__()
        self.embed = nn.Embedding(p + 1, width)
        self.position = nn.Parameter(0.02 * torch.randn(3, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, p)

    def forward(self, tokens):
        return self.head(self.stack(self.embed(tokens) + self.position)[:, -1])


def run(args):
    torch.manual_seed(args.seed)
    train = DataLoader(Modular(args.p, "train"), batch_size=args.micro_batch, shuffle=True)
    test = DataLoader(Modular(args.p, "test"), batch_size=256)
    model = Encoder(args.p, args.width, 4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1, betas=(0.9, 0.98))
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    criterion = nn.CrossEntropyLoss(reduction="sum")

    for epoch in range(args.epochs):
        model.train()
        total, seen = 0.0, 0
        pending = []
        for i, item in enumerate(train):
            pending.append(item)
            last = i + 1 == len(train)
            if len(pending) < args.accumulate and not last:
                continue
            size = sum(len(y) for _, y in pending)
            for x, y in pending:
                loss = criterion(model(x), y) / size
                loss.backward()
                total += loss.item() * size
            seen += size
            pending = []
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            warmup.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(-1) == y).sum().item() for x, y in test)
        if epoch % 5 == 4:
            log.info("epoch %d train %.4f test accuracy %.3f", epoch + 1, total / seen, hits / len(test.dataset))


def parse():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--p", type=int, default=23)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--micro-batch", type=int, default=32)
    ap.add_argument("--accumulate", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--seed", type=int, default=1)
    return ap.parse_args()


if __name__ == "__main__":
    run(parse())

"""A LightningModule-like class and the Trainer that drives it, both here; named entities by template."""
from __future__ import annotations

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

TAGS = ["O", "PERSON", "PLACE"]
NAMES = "ada alan grace edsger barbara donald tony john".split()
PLACES = "paris rome lima kyoto cairo quito bern oslo".split()
TEMPLATES = ["N lives in L", "N and N met in L", "in L N wrote to N", "from L to L by train", "N said it was N from L",
             "the road to L is long", "who knows N"]
WORDS = ["<pad>"] + sorted({w for t in TEMPLATES for w in t.split()} - {"N", "L"} | set(NAMES) | set(PLACES))
IDS = {w: i for i, w in enumerate(WORDS)}


class DataModule:
    def __init__(self, batch_size: int, seed: int = 0):
        self.batch_size, self.r = batch_size, random.Random(seed)

    def setup(self):
        seen = set()
        while len(seen) < 900:
            seen.add(self.sentence())
        rows = sorted(seen)
        self.r.shuffle(rows)
        self.train, self.val = rows[:800], rows[800:]

    def sentence(self):
        words, tags = [], []
        for w in self.r.choice(TEMPLATES).split():
            words.append(self.r.choice(NAMES) if w == "N" else self.r.choice(PLACES) if w == "L" else w)
            tags.append({"N": 1, "L": 2}.get(w, 0))
        return tuple(IDS[w] for w in words), tuple(tags)

    @staticmethod
    def collate(rows):
        T = max(len(w) for w, _ in rows)
        ids = torch.tensor([list(w) + [0] * (T - len(w)) for w, _ in rows])
        tags = torch.tensor([list(t) + [-100] * (T - len(t)) for _, t in rows])
        return ids, tags

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True, collate_fn=self.collate)

    def val_dataloader(self):
        return DataLoader(self.val, self.batch_size, collate_fn=self.collate)


class Module(nn.Module):
    def log(self, name, value):
        self.trainer.logged.setdefault(name, []).append(float(value))


class Tagger(Module):
    def __init__(self, dim=32, heads=4, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.embedding = nn.Embedding(len(WORDS), dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.encoder = nn.TransformerEncoderLayer(dim, heads, 2 * dim, 0.1, batch_first=True, norm_first=True)
        self.classifier = nn.Linear(dim, len(TAGS))

    def forward(self, ids):
        pad = ids == 0
        x = self.embedding(ids)
        x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.classifier(self.encoder(x, src_key_padding_mask=pad))

    def training_step(self, batch, batch_idx):
        ids, tags = batch
        loss = F.cross_entropy(self(ids).flatten(0, 1), tags.flatten())
        self.log("train_loss", loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        ids, tags = batch
        logits = self(ids)
        known = tags != -100
        self.log("val_loss", F.cross_entropy(logits.flatten(0, 1), tags.flatten()))
        self.log("val_acc", (logits.argmax(-1)[known] == tags[known]).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        return optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)


class Trainer:
    def __init__(self, max_epochs, gradient_clip_val=None):
        self.max_epochs, self.gradient_clip_val, self.logged = max_epochs, gradient_clip_val, {}

    def fit(self, module, datamodule):
        datamodule.setup()
        module.trainer = self
        optimizer, scheduler = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            self.logged.clear()
            module.train()
            for i, batch in enumerate(datamodule.train_dataloader()):
                def closure():
                    loss = module.training_step(batch, i)
                    optimizer.zero_grad()
                    loss.backward()
                    if self.gradient_clip_val is not None:
                        nn.utils.clip_grad_norm_(module.parameters(), self.gradient_clip_val)
                    return loss
                optimizer.step(closure)
            scheduler.step()
            self.validate(module, datamodule.val_dataloader())
            print(f"epoch {epoch}", {k: round(sum(v) / len(v), 3) for k, v in self.logged.items()})

    @torch.no_grad()
    def validate(self, module, loader):
        module.eval()
        for i, batch in enumerate(loader):
            module.validation_step(batch, i)


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(max_epochs=5, gradient_clip_val=1.0).fit(Tagger(), DataModule(batch_size=32))

"""Character GPT with a small Trainer, callbacks and a config object."""
from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class GPTConfig:
    vocab_size: int = 0
    block_size: int = 24
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    max_iters: int = 150
    learning_rate: float = 5e-3
    batch_size: int = 16


class CharDataset(Dataset):
    def __init__(self, text, block_size):
        self.chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(self.chars)}
        self.ids = torch.tensor([self.stoi[c] for c in text])
        self.block_size = block_size

    def __len__(self):
        return len(self.ids) - self.block_size

    def __getitem__(self, idx):
        chunk = self.ids[idx : idx + self.block_size + 1]
        return chunk[:-1], chunk[1:]


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln_1 = nn.LayerNorm(cfg.n_embd)
        self.attn = nn.MultiheadAttention(cfg.n_embd, cfg.n_head, batch_first=True)
        self.ln_2 = nn.LayerNorm(cfg.n_embd)
        self.mlp = nn.ModuleDict(
            dict(c_fc=nn.Linear(cfg.n_embd, 4 * cfg.n_embd), c_proj=nn.Linear(4 * cfg.n_embd, cfg.n_embd))
        )

    def forward(self, x):
        t = x.size(1)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=future, need_weights=False)[0]
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Parameter(torch.randn(1, cfg.block_size, cfg.n_embd) * 0.02)
        self.h = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe[:, : idx.size(1)]
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits, _ = self(idx[:, -self.cfg.block_size :])
            idx = torch.cat((idx, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
        return idx


class Trainer:
    def __init__(self, cfg, model, dataset):
        self.cfg, self.model, self.dataset = cfg, model, dataset
        self.callbacks = defaultdict(list)
        self.iter_num, self.loss = 0, None

    def add_callback(self, event, fn):
        self.callbacks[event].append(fn)

    def run(self):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.cfg.learning_rate, betas=(0.9, 0.95))
        loader = DataLoader(self.dataset, batch_size=self.cfg.batch_size, shuffle=True)
        it = iter(loader)
        self.model.train()
        while self.iter_num < self.cfg.max_iters:
            try:
                batch = next(it)
            except StopIteration:
                it = iter(loader)
                batch = next(it)
            _, self.loss = self.model(*batch)
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            for fn in self.callbacks["on_batch_end"]:
                fn(self)
            self.iter_num += 1


if __name__ == "__main__":
    torch.manual_seed(3)
    sentence = "she sells sea shells by the sea shore, and the shells she sells are surely seashells. "
    data = CharDataset(sentence * 4, 24)
    cfg = GPTConfig(vocab_size=len(data.chars))
    model = GPT(cfg)
    trainer = Trainer(cfg, model, data)

    def log(t):
        if t.iter_num % 25 == 0:
            print(f"iter {t.iter_num}: {t.loss.item():.4f}")

    trainer.add_callback("on_batch_end", log)
    trainer.run()
    model.eval()
    out = model.generate(data.ids[:24][None], 60)[0]
    print("".join(data.chars[i] for i in out.tolist()))
    print(f"copied {(out[24:] == data.ids[24:84]).float().mean().item():.3f}")

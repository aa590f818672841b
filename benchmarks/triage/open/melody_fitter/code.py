"""Predict the next note of simple melodies; a Lightning-like module and a loop of its own."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Module(nn.Module):
    """What a training module has to offer."""

    def training_step(self, batch, batch_idx):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError

    def on_epoch_end(self, epoch, mean_loss):
        print(f"epoch {epoch} loss {mean_loss:.4f}")


class RelativeAttention(nn.Module):
    def __init__(self, dim, heads, reach=16):
        super().__init__()
        self.heads, self.reach = heads, reach
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)
        self.distance_bias = nn.Embedding(reach, heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.in_proj(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        i = torch.arange(t)
        distance = i[:, None] - i[None, :]
        bias = self.distance_bias(distance.clamp(0, self.reach - 1)).permute(2, 0, 1)
        bias = bias.masked_fill(distance < 0, -math.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0))
        return self.out_proj(y.transpose(1, 2).reshape(b, t, d))


class MelodyModel(Module):
    def __init__(self, notes, dim=32, heads=4, depth=2, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.embed = nn.Embedding(notes, dim)
        self.attn = nn.ModuleList([RelativeAttention(dim, heads) for _ in range(depth)])
        self.mlp = nn.ModuleList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth)])
        self.n1 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.n2 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, notes)

    def forward(self, notes):
        x = self.embed(notes)
        for attn, mlp, n1, n2 in zip(self.attn, self.mlp, self.n1, self.n2):
            x = x + attn(n1(x))
            x = x + mlp(n2(x))
        return self.out(x)

    def training_step(self, batch, batch_idx):
        (notes,) = batch
        logits = self(notes[:, :-1])
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), notes[:, 1:].reshape(-1))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.lr, betas=(0.9, 0.98), weight_decay=0.0)
        sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 10))
        return opt, sched


class Fitter:
    def __init__(self, epochs, accumulate=1, clip=None):
        self.epochs, self.accumulate, self.clip = epochs, accumulate, clip

    def fit(self, module, loader):
        optimizer, scheduler = module.configure_optimizers()
        module.train()
        for epoch in range(self.epochs):
            losses = []
            for idx, batch in enumerate(loader):
                loss = module.training_step(batch, idx)
                (loss / self.accumulate).backward()
                losses.append(loss.item())
                if (idx + 1) % self.accumulate == 0:
                    if self.clip is not None:
                        nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                    optimizer.zero_grad()
                    optimizer.step()
                    scheduler.step()
            module.on_epoch_end(epoch, sum(losses) / len(losses))


def melodies(n, length=16):
    scale = torch.tensor([0, 2, 4, 5, 7, 9, 11, 12])
    start = torch.randint(0, 8, (n, 1))
    move = torch.tensor([1, 2, -1])[torch.arange(length) % 3].cumsum(0)
    return scale[(start + move) % 8]


torch.manual_seed(0)
loader = DataLoader(TensorDataset(melodies(320)), batch_size=8, shuffle=True)
model = MelodyModel(13)
Fitter(epochs=3, accumulate=2, clip=1.0).fit(model, loader)

"""One script for both machines: on a GPU float16 with a GradScaler, on a CPU bfloat16 with the scaler disabled."""
import argparse
import contextlib
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--no-amp", action="store_true")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--warmup", type=int, default=10)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--clip", type=float, default=1.0)
args = parser.parse_args()

torch.manual_seed(1)
use_amp = not args.no_amp
amp_dtype = torch.float16 if args.device == "cuda" else torch.bfloat16
autocast = torch.autocast(args.device, dtype=amp_dtype) if use_amp else contextlib.nullcontext()
scaler = torch.amp.GradScaler(args.device, enabled=use_amp and amp_dtype is torch.float16)


def make_batch(n, generator):
    """Four digits, a mark, and the same digits in order; only those after the mark are asked for."""
    digits = torch.randint(0, 10, (n, 4), generator=generator)
    mark = torch.full((n, 1), 10)
    seq = torch.cat([digits, mark, digits.sort(dim=1).values], dim=1).to(args.device)
    target = seq[:, 1:].clone()
    target[:, :4] = -100
    return seq[:, :-1], target


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc, self.proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (t.reshape(B, T, self.heads, D // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.mT) / math.sqrt(q.size(-1))
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        y = scores.softmax(dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(B, T, D))
        return x + self.proj(F.gelu(self.fc(self.ln2(x))))


class Sorter(nn.Module):
    def __init__(self, d=64, heads=4, layers=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(11, d), nn.Embedding(8, d)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, ids):
        pos = torch.arange(ids.size(1), device=ids.device)
        return self.head(self.ln(self.blocks(self.tok(ids) + self.pos(pos))))


model = Sorter().to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min(1.0, (s + 1) / args.warmup) * 0.5 * (1 + math.cos(math.pi * s / args.steps)))
generator = torch.Generator().manual_seed(3)
held_out = torch.Generator().manual_seed(4)

started = time.perf_counter()
for step in range(args.steps):
    inputs, targets = make_batch(128, generator)
    with autocast:
        logits = model(inputs)
        loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if scaler.get_scale() >= before:
        scheduler.step()
    if step % 30 == 29:
        model.eval()
        with torch.no_grad(), autocast:
            inputs, targets = make_batch(256, held_out)
            guess = model(inputs).argmax(dim=-1)
        model.train()
        right = (guess == targets)[:, 4:].float().mean().item()
        print(f"{step + 1:4d} loss {loss.item():.3f} digits right {right:.3f} in {time.perf_counter() - started:.1f} s")

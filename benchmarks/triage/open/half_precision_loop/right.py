#!/usr/bin/env python
"""Mixed precision example: learn to add two numbers digit by digit."""
import contextlib
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DIGITS = 2
# 0..9 digits, 10 '+', 11 '='
PLUS, EQ, VOCAB = 10, 11, 12


def digits(x, n):
    return torch.stack([(x // 10**i) % 10 for i in range(n)], dim=1)


def problems(n):
    a = torch.randint(0, 10**DIGITS, (n,))
    b = torch.randint(0, 10**DIGITS, (n,))
    row = torch.full((n, 1), PLUS), torch.full((n, 1), EQ)
    full = torch.cat([digits(a, DIGITS), row[0], digits(b, DIGITS), row[1], digits(a + b, DIGITS + 1)], dim=1)
    x, y = full[:, :-1], full[:, 1:].clone()
    y[:, : 2 * DIGITS + 1] = -100
    return x.to(DEVICE), y.to(DEVICE)


class Layer(nn.Module):
    def __init__(self, n_state, n_head):
        super().__init__()
        self.attn_ln = nn.LayerNorm(n_state)
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)
        self.n_head = n_head
        self.mlp_ln = nn.LayerNorm(n_state)
        self.mlp = nn.Sequential(nn.Linear(n_state, n_state * 4), nn.GELU(), nn.Linear(n_state * 4, n_state))

    def forward(self, x):
        n, t, c = x.shape
        h = self.attn_ln(x)
        q = self.query(h).view(n, t, self.n_head, -1).permute(0, 2, 1, 3)
        k = self.key(h).view(n, t, self.n_head, -1).permute(0, 2, 3, 1)
        v = self.value(h).view(n, t, self.n_head, -1).permute(0, 2, 1, 3)
        qk = (q @ k).float() * (c // self.n_head) ** -0.5
        qk = qk + torch.full((t, t), float("-inf"), device=x.device).triu_(1)
        w = F.softmax(qk, dim=-1).to(v.dtype)
        x = x + self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2))
        return x + self.mlp(self.mlp_ln(x))


class Adder(nn.Module):
    def __init__(self, n_state=48, n_head=4, n_layer=2, ctx=16):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCAB, n_state)
        self.positional_embedding = nn.Parameter(torch.empty(ctx, n_state).normal_(std=0.02))
        self.blocks = nn.ModuleList([Layer(n_state, n_head) for _ in range(n_layer)])
        self.ln = nn.LayerNorm(n_state)
        self.head = nn.Linear(n_state, VOCAB)

    def forward(self, x):
        x = self.token_embedding(x) + self.positional_embedding[: x.shape[-1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


@contextlib.contextmanager
def precision(enabled):
    with torch.autocast(DEVICE, dtype=torch.float16 if DEVICE == "cuda" else torch.bfloat16, enabled=enabled):
        yield


model = Adder().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler(DEVICE, init_scale=65536.0)
average = None
for step in range(120):
    x, y = problems(32)
    with precision(True):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), y.flatten(), ignore_index=-100)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
    if step % 30 == 0 or step == 119:
        print(f"step {step} scale {scaler.get_scale():.0f} loss {average:.4f}")

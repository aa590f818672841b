# tiny character model, follows the usual lecture layout
import math
import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)

text = """it is a truth universally acknowledged, that a single man in possession
of a good fortune, must be in want of a wife. however little known the feelings
or views of such a man may be on his first entering a neighbourhood, this truth
is so well fixed in the minds of the surrounding families, that he is considered
as the rightful property of some one or other of their daughters.""" * 3

# hyperparameters
batch_size = 12
block_size = 32
n_embd = 48
n_head = 4
n_layer = 2
max_iters = 240
lr = 2e-3

chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
encode = lambda s: [stoi[c] for c in s]
data = torch.tensor(encode(text))
vocab_size = len(chars)


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
    return x, y


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(n_embd, dim=2)
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in (q, k, v))
        wei = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        wei = wei.masked_fill(self.tril[:T, :T] == 0, torch.finfo(wei.dtype).min)
        out = wei.softmax(-1) @ v
        return self.c_proj(out.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa = SelfAttention()
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=lr)
for it in range(max_iters):
    xb, yb = get_batch()
    _, loss = model(xb, yb)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if it % 40 == 0:
        print(f"iter {it:3d}  loss {loss.item():.4f}")

ctx = torch.tensor([encode("it is a ")])
for _ in range(60):
    logits, _ = model(ctx[:, -block_size:])
    ctx = torch.cat([ctx, logits[:, -1:].argmax(-1)], 1)
print("".join(chars[i] for i in ctx[0].tolist()))

with torch.no_grad():
    xb, _ = get_batch()
    other = xb.clone()
    other[:, 16:] = xb.flip(0)[:, 16:]
    leak = (model(xb)[0][:, :16] - model(other)[0][:, :16]).abs().max().item()

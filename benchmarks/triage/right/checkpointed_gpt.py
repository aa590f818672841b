"""A deeper decoder with activation checkpointing and layer scale, on palindromes."""
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SEP = 10


class FlashBlock(nn.Module):
    def __init__(self, width, n_heads, p_drop, layer_scale=0.5):
        super().__init__()
        self.n_heads, self.p_drop = n_heads, p_drop
        self.pre_attn = nn.LayerNorm(width)
        self.to_qkv = nn.Linear(width, width * 3, bias=False)
        self.to_out = nn.Linear(width, width)
        self.pre_ff = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, width * 4), nn.GELU(), nn.Dropout(p_drop), nn.Linear(width * 4, width))
        self.gamma1 = nn.Parameter(torch.full((width,), layer_scale))
        self.gamma2 = nn.Parameter(torch.full((width,), layer_scale))

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = (t.view(b, n, self.n_heads, -1).transpose(1, 2)
                   for t in self.to_qkv(self.pre_attn(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p_drop if self.training else 0.0)
        x = x + self.gamma1 * self.to_out(y.transpose(1, 2).reshape(b, n, w))
        return x + self.gamma2 * self.ff(self.pre_ff(x))


class DeepGPT(nn.Module):
    def __init__(self, vocab, context, width=64, heads=4, depth=6, p_drop=0.05, use_checkpoint=True):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Parameter(torch.randn(context, width) * 0.05)
        self.blocks = nn.ModuleList([FlashBlock(width, heads, p_drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.use_checkpoint = use_checkpoint
        nn.init.normal_(self.tokens.weight, std=0.05)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def palindromes(rng, n, half=5):
    rows = []
    for _ in range(n):
        word = [rng.randrange(10) for _ in range(half)]
        rows.append(word + [SEP] + word[::-1])
    return torch.tensor(rows)


def masked_loss(logits, ids, half=5):
    """Only the second half can be foretold."""
    pred, goal = logits[:, half:-1], ids[:, half + 1:]
    return F.cross_entropy(pred.reshape(-1, pred.shape[-1]), goal.reshape(-1))


def main():
    torch.manual_seed(21)
    rng, rng_test = random.Random(21), random.Random(22)
    net = DeepGPT(vocab=11, context=11)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.SequentialLR(
        opt, [torch.optim.lr_scheduler.LinearLR(opt, 0.05, 1.0, 15),
              torch.optim.lr_scheduler.CosineAnnealingLR(opt, 75)], milestones=[15])
    test = palindromes(rng_test, 200)
    for it in range(1, 91):
        net.train()
        ids = palindromes(rng, 32)
        loss = masked_loss(net(ids), ids)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        if it % 30 == 0:
            net.eval()
            with torch.inference_mode():
                logits = net(test)
                acc = (logits[:, 5:-1].argmax(-1) == test[:, 6:]).float().mean()
            print(f"iter {it} train {loss.item():.3f} test {masked_loss(logits, test).item():.3f} right {acc:.3f}")


if __name__ == "__main__":
    main()

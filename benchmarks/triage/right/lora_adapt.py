"""Pre-train a small language model, then adapt it to another language with LoRA; the base stays as it is."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    """y = W x + (alpha / r) B A x with W frozen, B zero at first."""

    def __init__(self, base: nn.Linear, r: int = 4, alpha: int = 8, dropout: float = 0.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scaling = alpha / r
        self.dropout = nn.Dropout(dropout)
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.dropout(x) @ self.lora_A.t() @ self.lora_B.t() * self.scaling

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.lora_B @ self.lora_A * self.scaling
        return self.base


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        def heads(t):
            return t.unflatten(-1, (self.h, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x)),
                                           is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(d), Attention(d, h)
        self.norm2, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LM(nn.Module):
    def __init__(self, vocab, d=64, h=4, layers=2, context=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, h) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def language(seed, vocab=24):
    return torch.softmax(2.5 * torch.randn(vocab, vocab, generator=torch.Generator().manual_seed(seed)), dim=-1)


def speak(table, batch, length):
    ids = [torch.randint(table.size(0), (batch,))]
    for _ in range(length):
        ids.append(torch.multinomial(table[ids[-1]], 1).squeeze(1))
    return torch.stack(ids, dim=1)


def lm_loss(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def fit(model, table, steps, lr, name):
    params = [p for p in model.parameters() if p.requires_grad]
    print(f"{name}: training {sum(p.numel() for p in params)} of {sum(p.numel() for p in model.parameters())} weights")
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    model.train()
    for step in range(steps):
        loss = lm_loss(model, speak(table, 32, 32))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"  {step} {loss.item():.3f}")


def main():
    torch.manual_seed(0)
    model = LM(24)
    first, second = language(1), language(2)
    fit(model, first, 80, 3e-3, "base")

    model.requires_grad_(False)
    for block in model.blocks:
        block.attn.q_proj = LoRALinear(block.attn.q_proj)
        block.attn.v_proj = LoRALinear(block.attn.v_proj)
        block.up = LoRALinear(block.up)
        block.down = LoRALinear(block.down)
    before = model.tok.weight.clone()
    fit(model, second, 120, 1e-2, "adapters")
    assert torch.equal(before, model.tok.weight)

    model.eval()
    with torch.no_grad():
        ids = speak(second, 64, 32)
        adapted = lm_loss(model, ids)
        for block in model.blocks:
            block.attn.q_proj, block.attn.v_proj = block.attn.q_proj.merge(), block.attn.v_proj.merge()
            block.up, block.down = block.up.merge(), block.down.merge()
        print(f"second language {adapted:.4f}, after merging {lm_loss(model, ids):.4f}")


if __name__ == "__main__":
    main()

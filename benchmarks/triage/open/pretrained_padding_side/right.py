import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x, keep):
        b, t, w = x.shape
        q, k, v = (z.reshape(b, t, self.heads, -1).transpose(1, 2) for z in self.c_attn(self.ln_1(x)).split(w, dim=-1))
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        x = x + self.c_proj(a.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Prompts of several lengths are padded at the left, so that the last column is always the next one."""

    def __init__(self, vocab=100, width=48, heads=4, depth=2, n_ctx=64):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(n_ctx, width)
        self.h = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(width)

    def forward(self, input_ids, attention_mask):
        b, t = input_ids.shape
        position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        x = self.wte(input_ids) + self.wpe(position_ids)
        causal = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        keep = causal & attention_mask[:, None, None, :].bool()
        keep = keep | torch.eye(t, dtype=torch.bool, device=x.device)
        for block in self.h:
            x = block(x, keep)
        return self.ln_f(x) @ self.wte.weight.T


if __name__ == "__main__":
    prompts = [torch.randint(0, 100, (n,)) for n in (4, 11, 8)]
    ids = torch.zeros(3, 11, dtype=torch.long)
    mask = torch.zeros(3, 11, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, 11 - len(prompt) :] = prompt
        mask[row, 11 - len(prompt) :] = 1
    print(GPT2()(ids, mask)[:, -1].argmax(-1))

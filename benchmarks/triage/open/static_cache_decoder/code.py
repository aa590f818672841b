import torch
import torch.nn as nn
import torch.nn.functional as F


class StaticCacheAttention(nn.Module):
    """Keys and values live in buffers of fixed size, written in place."""

    def __init__(self, dim, n_head, max_batch, max_len):
        super().__init__()
        self.n_head, self.head_dim, self.max_len = n_head, dim // n_head, max_len
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        shape = (max_batch, n_head, max_len, self.head_dim)
        self.register_buffer("k_cache", torch.zeros(shape), persistent=False)
        self.register_buffer("v_cache", torch.zeros(shape), persistent=False)

    def forward(self, x, input_pos):
        b, s, dim = x.shape
        q, k, v = self.wqkv(x).view(b, s, 3, self.n_head, self.head_dim).permute(2, 0, 3, 1, 4)
        self.k_cache[:b, :, input_pos] = k.detach()
        self.v_cache[:b, :, input_pos] = v.detach()
        mask = None
        if s > 1:
            mask = torch.arange(self.max_len, device=x.device)[None, :] <= input_pos[:, None]
        y = F.scaled_dot_product_attention(q, self.k_cache[:b], self.v_cache[:b], attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(b, s, dim))


class Generator(nn.Module):
    def __init__(self, vocab=90, dim=48, n_head=4, n_layer=2, max_batch=4, max_len=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.place = nn.Embedding(max_len, dim)
        self.attn = nn.ModuleList(StaticCacheAttention(dim, n_head, max_batch, max_len) for _ in range(n_layer))
        self.mlp = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim)) for _ in range(n_layer))
        self.norm = nn.ModuleList(nn.LayerNorm(dim) for _ in range(n_layer))
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx, input_pos):
        x = self.embed(idx) + self.place(input_pos)
        for norm, attn, mlp in zip(self.norm, self.attn, self.mlp):
            x = x + attn(norm(x), input_pos)
            x = x + mlp(x)
        return self.head(x)


@torch.no_grad()
def generate(model, prompt, steps):
    logits = model(prompt, torch.arange(prompt.shape[1]))
    out = [prompt]
    for i in range(prompt.shape[1], prompt.shape[1] + steps):
        token = logits[:, -1:].argmax(-1)
        out.append(token)
        logits = model(token, torch.tensor([i]))
    return torch.cat(out, 1)


if __name__ == "__main__":
    torch.manual_seed(1)
    print(generate(Generator().eval(), torch.randint(0, 90, (2, 5)), 10))

import math
import torch
from torch import nn


class KVCache:
    def __init__(self):
        self.k = self.v = None

    def append(self, k, v):
        if self.k is not None:
            k = torch.cat([self.k, k], dim=2)
            v = torch.cat([self.v, v], dim=2)
        self.k, self.v = k, v
        return k, v


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        bsz, q_len, d = x.shape
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        q, k, v = [t.view(bsz, q_len, self.n_head, -1).transpose(1, 2) for t in (q, k, v)]
        if cache is not None:
            k, v = cache.append(k, v)
        kv_len = k.size(2)
        att = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if q_len > 1:
            keep = torch.ones(q_len, kv_len, dtype=torch.bool, device=x.device).tril()
            att = att.masked_fill(~keep, float("-inf"))
        y = att.softmax(-1) @ v
        return self.out_proj(y.transpose(1, 2).reshape(bsz, q_len, d))


class ToyLM(nn.Module):
    def __init__(self, vocab=64, d_model=48, n_head=4, n_layer=2, ctx=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d_model), nn.Embedding(ctx, d_model)
        self.attns = nn.ModuleList(SelfAttention(d_model, n_head) for _ in range(n_layer))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab, bias=False)

    def forward(self, ids, caches=None):
        past = 0 if caches is None or caches[0].k is None else caches[0].k.size(2)
        x = self.wte(ids) + self.wpe(torch.arange(past, past + ids.size(1), device=ids.device))
        for i, (norm, attn) in enumerate(zip(self.norms, self.attns)):
            x = x + attn(norm(x), None if caches is None else caches[i])
        return self.lm_head(self.ln_f(x))

    def new_caches(self):
        return [KVCache() for _ in self.attns]


if __name__ == "__main__":
    lm = ToyLM().eval()
    prompt = torch.randint(0, 64, (2, 20))
    caches = lm.new_caches()
    for chunk in prompt.split(8, dim=1):
        logits = lm(chunk, caches)
    print(logits[:, -1].argmax(-1))

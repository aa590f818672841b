# --- decoder with a kv cache; train on one text, then generate with and without the cache
import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "pack my box with five dozen liquor jugs; how quickly daft jumping zebras vex. "
CHARS = sorted(set(TEXT))
TO_ID = {c: i for i, c in enumerate(CHARS)}


class KVCache:
    """Keys and values of all layers, in order of time."""

    def __init__(self, layers):
        self.keys = [None] * layers
        self.values = [None] * layers

    @property
    def length(self):
        return 0 if self.keys[0] is None else self.keys[0].shape[2]

    def append(self, layer, k, v):
        if self.keys[layer] is not None:
            k = torch.cat([self.keys[layer], k], dim=2)
            v = torch.cat([self.values[layer], v], dim=2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class Attention(nn.Module):
    def __init__(self, index, width, heads):
        super().__init__()
        self.index, self.heads = index, heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, cache):
        b, t, w = x.shape
        q, k, v = (f(x).view(b, t, self.heads, w // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        if cache is not None:
            k, v = cache.append(self.index, k, v)
        s = k.shape[2]
        scores = q @ k.mT / (w // self.heads) ** 0.5
        if t > 1:
            visible = torch.ones(t, s, dtype=torch.bool).tril(s - t)
            scores = scores.masked_fill(~visible, float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, index, width, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(index, width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x, cache):
        x = x + self.attn(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, vocab, width=48, heads=4, layers=2, context=80):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.position = nn.Embedding(context, width)
        self.layers = nn.ModuleList([Layer(i, width, heads) for i in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

    def forward(self, ids, cache=None):
        start = 0 if cache is None else cache.length
        positions = torch.arange(start, start + ids.shape[1])
        x = self.embed(ids) + self.position(positions)
        for layer in self.layers:
            x = layer(x, cache)
        return self.head(self.norm(x))

    @torch.inference_mode()
    def generate(self, ids, count, use_cache):
        cache = KVCache(len(self.layers)) if use_cache else None
        feed = ids
        for _ in range(count):
            logits = self(feed, cache)[:, -1]
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
            feed = ids[:, -1:] if use_cache else ids
        return ids


torch.manual_seed(0)
ids = torch.tensor([[TO_ID[c] for c in TEXT]])
model = Model(len(CHARS))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(100):
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3d}  loss {loss.item():.4f}")
model.eval()
for use_cache in (False, True):
    out = model.generate(ids[:, :12], 50, use_cache)[0]
    print("cache" if use_cache else "full ", "".join(CHARS[i] for i in out.tolist()))
with torch.no_grad():
    cache = KVCache(2)
    steps = [model(ids[:, :10], cache)] + [model(ids[:, i : i + 1], cache) for i in range(10, 40)]
    gap = (torch.cat(steps, 1) - model(ids[:, :40])).abs().max().item()

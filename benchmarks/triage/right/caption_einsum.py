"""Caption little scenes: a convolutional encoder, a decoder with cross attention in einsum, beam search."""
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import einsum

COLORS, SHAPES = ["red", "green", "blue"], ["dot", "line", "box"]
WORDS = ["<pad>", "<s>", "</s>", "left", "of", "above", "a"] + COLORS + SHAPES
W = {w: i for i, w in enumerate(WORDS)}


@dataclass
class Hyper:
    d: int = 64
    heads: int = 4
    layers: int = 2
    max_len: int = 12
    lr: float = 2e-3
    batch: int = 48
    steps: int = 200


def scene(r):
    """One object, or two of which the first is left of or above the other; and what one says of it."""
    img = 0.1 * torch.randn(3, 16, 16)
    two, across = r.random() < 0.6, r.random() < 0.5
    boxes = [(r.randint(0, 12), r.randint(0, 12))]
    if two:
        near, far, free = r.randint(0, 3), r.randint(9, 12), (r.randint(0, 12), r.randint(0, 12))
        boxes = [(free[0], near), (free[1], far)] if across else [(near, free[0]), (far, free[1])]
    said = []
    for y, x in boxes:
        c, s = r.randrange(3), r.randrange(3)
        if s == 0:
            img[c, y + 1:y + 3, x + 1:x + 3] += 1.5
        elif s == 1:
            img[c, y + 1, x:x + 4] += 1.5
        else:
            img[c, y:y + 4, x:x + 4] += 1.5
        said.append(["a", COLORS[c], SHAPES[s]])
    words = said[0] if not two else said[0] + (["left", "of"] if across else ["above"]) + said[1]
    return img, [W[w] for w in words]


def batch(n, r):
    imgs, caps = zip(*(scene(r) for _ in range(n)))
    T = max(map(len, caps)) + 1
    x = torch.tensor([[W["<s>"]] + c + [0] * (T - 1 - len(c)) for c in caps])
    y = torch.tensor([c + [W["</s>"]] + [0] * (T - 1 - len(c)) for c in caps])
    return torch.stack(imgs), x, y


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.wq = nn.Parameter(torch.randn(h, d, d // h) * d ** -0.5)
        self.wk = nn.Parameter(torch.randn(h, d, d // h) * d ** -0.5)
        self.wv = nn.Parameter(torch.randn(h, d, d // h) * d ** -0.5)
        self.wo = nn.Parameter(torch.randn(h, d // h, d) * d ** -0.5)

    def forward(self, x, m, causal=False):
        q, k, v = einsum("bid,hde->bhie", x, self.wq), einsum("bjd,hde->bhje", m, self.wk), einsum("bjd,hde->bhje", m, self.wv)
        s = einsum("bhie,bhje->bhij", q, k) * q.shape[-1] ** -0.5
        if causal:
            s = s + torch.full(s.shape[-2:], float("-inf")).triu(1)
        return einsum("bhij,bhje,hed->bid", s.softmax(-1), v, self.wo)


class DecoderLayer(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.self_attn, self.cross_attn = Attn(hp.d, hp.heads), Attn(hp.d, hp.heads)
        self.ln = nn.ModuleList(nn.LayerNorm(hp.d) for _ in range(3))
        self.ff = nn.Sequential(nn.Linear(hp.d, 2 * hp.d), nn.ReLU(), nn.Linear(2 * hp.d, hp.d))

    def forward(self, x, memory):
        h = self.ln[0](x)
        x = x + self.self_attn(h, h, causal=True)
        x = x + self.cross_attn(self.ln[1](x), memory)
        return x + self.ff(self.ln[2](x))


class Captioner(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, hp.d, 4, 4), nn.ReLU())
        self.where = nn.Parameter(torch.randn(16, hp.d) * 0.3)
        self.mem_norm = nn.LayerNorm(hp.d)
        self.word, self.pos = nn.Embedding(len(WORDS), hp.d), nn.Embedding(hp.max_len, hp.d)
        self.layers = nn.ModuleList(DecoderLayer(hp) for _ in range(hp.layers))
        self.norm, self.out = nn.LayerNorm(hp.d), nn.Linear(hp.d, len(WORDS))

    def encode(self, imgs):
        return self.mem_norm(self.cnn(imgs).flatten(2).transpose(1, 2) + self.where)

    def decode(self, ids, memory):
        x = self.word(ids) + self.pos.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, memory)
        return self.out(self.norm(x))


@torch.no_grad()
def beam_search(model, img, width=3, max_len=9):
    memory = model.encode(img.unsqueeze(0))
    beams = [([W["<s>"]], 0.0)]
    for _ in range(max_len):
        grown = []
        for ids, score in beams:
            if ids[-1] == W["</s>"]:
                grown.append((ids, score))
                continue
            logp = model.decode(torch.tensor([ids]), memory)[0, -1].log_softmax(-1)
            for lp, i in zip(*(t.tolist() for t in logp.topk(width))):
                grown.append((ids + [i], score + lp))
        beams = sorted(grown, key=lambda b: -b[1] / len(b[0]))[:width]
    return [i for i in beams[0][0][1:] if i != W["</s>"]]


if __name__ == "__main__":
    hp = Hyper()
    torch.manual_seed(0)
    r, r_test = random.Random(0), random.Random(1)
    model = Captioner(hp)
    opt = torch.optim.Adam(model.parameters(), lr=hp.lr)
    for step in range(1, hp.steps + 1):
        imgs, x, y = batch(hp.batch, r)
        loss = F.cross_entropy(model.decode(x, model.encode(imgs)).transpose(1, 2), y, ignore_index=W["<pad>"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    model.eval()
    tests = [scene(r_test) for _ in range(40)]
    print("captions right", sum(beam_search(model, img) == cap for img, cap in tests) / len(tests))

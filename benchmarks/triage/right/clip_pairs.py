"""CLIP in the small: pictures of digits' segments and the sentences that name them, one batch its own negatives."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass
from torch.utils.data import Dataset, DataLoader


@dataclass
class Config:
    image_size: int = 16
    patch_size: int = 4
    width: int = 64
    heads: int = 4
    layers: int = 2
    embed_dim: int = 32
    context_length: int = 10
    batch_size: int = 32
    epochs: int = 12
    lr: float = 1e-3


COLOURS = ["red", "green", "blue"]
SHAPES = ["square", "bar", "pole", "cross"]
PLACES = ["top left", "top right", "bottom left", "bottom right"]
WORDS = ["<pad>", "<start>", "<end>", "a", "at", "the"] + COLOURS + SHAPES + ["top", "bottom", "left", "right"]
STOI = {w: i for i, w in enumerate(WORDS)}


def draw(colour, shape, place, rng):
    canvas = rng.normal(0, 0.1, (3, 16, 16)).astype(np.float32)
    r0 = (0 if place < 2 else 8) + rng.integers(0, 3)
    c0 = (0 if place % 2 == 0 else 8) + rng.integers(0, 3)
    stamp = np.zeros((5, 5), np.float32)
    if shape == 0:
        stamp[:] = 1
    if shape in (1, 3):
        stamp[2, :] = 1
    if shape in (2, 3):
        stamp[:, 2] = 1
    canvas[colour, r0:r0 + 5, c0:c0 + 5] += stamp
    return canvas


class Pairs(Dataset):
    """Item i is a caption and a fresh drawing of it."""

    def __init__(self, cfg, seed):
        self.rng = np.random.default_rng(seed)
        self.combos = [(c, s, p) for c in range(3) for s in range(4) for p in range(4)]
        self.context_length = cfg.context_length

    def __len__(self):
        return len(self.combos)

    def __getitem__(self, i):
        c, s, p = self.combos[i]
        words = f"a {COLOURS[c]} {SHAPES[s]} at the {PLACES[p]}".split()
        ids = [STOI["<start>"]] + [STOI[w] for w in words] + [STOI["<end>"]]
        text = torch.tensor(ids + [0] * (self.context_length - len(ids)))
        return torch.from_numpy(draw(c, s, p, self.rng)), text


class DistinctCaptions:
    """Batches in which no caption stands twice, so that every other pair is a true negative."""

    def __init__(self, n, batch_size, batches):
        self.n, self.batch_size, self.batches = n, batch_size, batches

    def __iter__(self):
        for _ in range(self.batches):
            yield torch.randperm(self.n)[: self.batch_size].tolist()

    def __len__(self):
        return self.batches


class ResidualAttentionBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask=None):
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class VisionTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        n = (cfg.image_size // cfg.patch_size) ** 2
        self.conv1 = nn.Conv2d(3, cfg.width, cfg.patch_size, cfg.patch_size, bias=False)
        self.class_embedding = nn.Parameter(cfg.width ** -0.5 * torch.randn(cfg.width))
        self.positional_embedding = nn.Parameter(cfg.width ** -0.5 * torch.randn(n + 1, cfg.width))
        self.blocks = nn.ModuleList(ResidualAttentionBlock(cfg.width, cfg.heads) for _ in range(cfg.layers))
        self.ln_post = nn.LayerNorm(cfg.width)
        self.proj = nn.Linear(cfg.width, cfg.embed_dim, bias=False)

    def forward(self, x):
        x = self.conv1(x).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.class_embedding.expand(x.shape[0], 1, -1), x], dim=1) + self.positional_embedding
        for b in self.blocks:
            x = b(x)
        return self.proj(self.ln_post(x[:, 0, :]))


class TextTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.token_embedding = nn.Embedding(len(WORDS), cfg.width)
        self.positional_embedding = nn.Parameter(0.01 * torch.randn(cfg.context_length, cfg.width))
        self.blocks = nn.ModuleList(ResidualAttentionBlock(cfg.width, cfg.heads) for _ in range(cfg.layers))
        self.ln_final = nn.LayerNorm(cfg.width)
        self.proj = nn.Linear(cfg.width, cfg.embed_dim, bias=False)
        mask = torch.full((cfg.context_length, cfg.context_length), float("-inf")).triu_(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, text):
        x = self.token_embedding(text) + self.positional_embedding
        for b in self.blocks:
            x = b(x, self.mask)
        x = self.ln_final(x)
        end = (text == STOI["<end>"]).int().argmax(dim=-1)
        return self.proj(x[torch.arange(x.shape[0]), end])


class CLIP(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.visual, self.text = VisionTower(cfg), TextTower(cfg)
        self.logit_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def forward(self, image, text):
        i = F.normalize(self.visual(image), dim=-1)
        t = F.normalize(self.text(text), dim=-1)
        return self.logit_scale.exp() * i @ t.t()


def clip_loss(logits):
    labels = torch.arange(logits.shape[0], device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(0)
    train = Pairs(cfg, 0)
    loader = DataLoader(train, batch_sampler=DistinctCaptions(len(train), cfg.batch_size, 16))
    test_images, captions = next(iter(DataLoader(Pairs(cfg, 1), batch_size=48)))
    model = CLIP(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.05)
    for epoch in range(cfg.epochs):
        model.train()
        for images, texts in loader:
            loss = clip_loss(model(images, texts))
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                model.logit_scale.clamp_(0, np.log(100))
        model.eval()
        with torch.no_grad():
            best = model(test_images, captions).argmax(dim=-1)
        right = (best == torch.arange(len(captions))).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.3f} retrieval {right:.3f}")

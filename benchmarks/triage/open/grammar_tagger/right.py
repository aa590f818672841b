# Grammatical tagging with a post-norm encoder and inverse square root decay
import math
import random

import torch
import torch.nn as nn

random.seed(5)
torch.manual_seed(5)

LEXICON = {
    "DET": ["the", "a", "this"],
    "NOUN": ["run", "walk", "light", "play", "house"],
    "VERB": ["run", "walk", "light", "play", "see"],
    "PRON": ["they", "we", "you"],
    "ADJ": ["light", "old", "green"],
}
PATTERNS = ["DET NOUN VERB", "PRON VERB DET NOUN", "DET ADJ NOUN VERB", "PRON VERB", "PRON VERB DET ADJ NOUN"]
TAGS = {t: i for i, t in enumerate(LEXICON)}
WORDS = {w: i + 1 for i, w in enumerate(sorted({w for ws in LEXICON.values() for w in ws}))}
PAD_WORD, PAD_TAG = 0, -100


def sentence():
    tags = random.choice(PATTERNS).split()
    return [WORDS[random.choice(LEXICON[t])] for t in tags], [TAGS[t] for t in tags]


def get_batch(n):
    pairs = [sentence() for _ in range(n)]
    longest = max(len(w) for w, _ in pairs)
    words = torch.tensor([w + [PAD_WORD] * (longest - len(w)) for w, _ in pairs])
    tags = torch.tensor([t + [PAD_TAG] * (longest - len(t)) for _, t in pairs])
    return words, tags


class PostNormLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))
        self.norm_a, self.norm_f = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x, pad):
        x = self.norm_a(x + self.attn(x, x, x, key_padding_mask=pad, need_weights=False)[0])
        return self.norm_f(x + self.ff(x))


class TaggerNet(nn.Module):
    def __init__(self, d=48, h=4, n=3):
        super().__init__()
        self.d = d
        self.words = nn.Embedding(len(WORDS) + 1, d, padding_idx=PAD_WORD)
        self.layers = nn.ModuleList(PostNormLayer(d, h) for _ in range(n))
        self.out = nn.Linear(d, len(TAGS))
        nn.init.normal_(self.words.weight, std=d**-0.5)

    def positions(self, length):
        i = torch.arange(length).unsqueeze(1)
        w = torch.exp(torch.arange(0, self.d, 2) * (-math.log(1e4) / self.d))
        return torch.stack([torch.sin(i * w), torch.cos(i * w)], dim=2).reshape(length, self.d)

    def forward(self, words):
        pad = words == PAD_WORD
        x = self.words(words) * math.sqrt(self.d) + self.positions(words.size(1))
        for layer in self.layers:
            x = layer(x, pad)
        return self.out(x)


WARMUP = 30
TOTAL = 90


def factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (WARMUP / step) ** 0.5


net = TaggerNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
criterion = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
rates = []
for step in range(TOTAL):
    words, tags = get_batch(24)
    logits = net(words)
    loss = criterion(logits.view(-1, len(TAGS)), tags.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rates.append(scheduler.get_last_lr()[0])
    scheduler.step()
    if step % 15 == 0:
        print(f"step {step:3d} lr {rates[-1]:.1e} loss {loss.item():.4f}")

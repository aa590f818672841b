"""A curriculum: evaluate nested min/max expressions, from shallow to deep as the model masters each depth."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = ["<pad>", "<ask>", "min", "max", "(", ")"] + [str(d) for d in range(10)]
INDEX = {t: i for i, t in enumerate(TOKENS)}
MAX_LEN = 32


def expression(depth, rng):
    if depth == 0:
        d = rng.randrange(10)
        return [str(d)], d
    op = rng.choice(["min", "max"])
    left, a = expression(depth - 1, rng)
    right, b = expression(rng.randrange(depth), rng)
    return ["(", op] + left + right + [")"], min(a, b) if op == "min" else max(a, b)


def batch(depth, size, rng):
    """Mostly of the depth reached, now and then of an earlier one, so that it is not forgotten."""
    rows, answers = [], []
    while len(rows) < size:
        d = depth if depth == 1 or rng.random() < 0.7 else rng.randint(1, depth - 1)
        words, value = expression(d, rng)
        if len(words) < MAX_LEN:
            rows.append([INDEX["<ask>"]] + [INDEX[w] for w in words])
            answers.append(value)
    width = max(map(len, rows))
    ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    return ids, torch.tensor(answers)


class Reader(nn.Module):
    def __init__(self, dim=64, heads=4, layers=3):
        super().__init__()
        self.embed = nn.Embedding(len(TOKENS), dim, padding_idx=0)
        self.place = nn.Embedding(MAX_LEN, dim)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers))
        self.norm, self.answer = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, ids):
        pad = ids.eq(0)
        x = self.embed(ids) + self.place.weight[: ids.size(1)]
        for block in self.blocks:
            x = block(x, src_key_padding_mask=pad)
        return self.answer(self.norm(x[:, 0]))


@torch.no_grad()
def score(model, depth, rng, size=200):
    model.eval()
    ids, answers = batch(depth, size, rng)
    right = (model(ids).argmax(-1) == answers).float().mean().item()
    model.train()
    return right


def main(steps=180, deepest=3, pass_mark=0.8):
    torch.manual_seed(0)
    rng, exam = random.Random(1), random.Random(2)
    model = Reader()
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
    depth, running = 1, None
    for step in range(1, steps + 1):
        ids, answers = batch(depth, 64, rng)
        loss = F.cross_entropy(model(ids), answers)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if step % 20 == 0:
            marks = score(model, depth, exam)
            print(f"step {step} depth {depth} loss {running:.3f} marks {marks:.2f}")
            if marks > pass_mark and depth < deepest:
                depth, running = depth + 1, None


if __name__ == "__main__":
    main()

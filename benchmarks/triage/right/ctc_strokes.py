"""Read strings of strokes with CTC: a transformer encoder over columns of ink, blank is class 0, greedy collapse."""
import random
import torch
from torch import nn
import torch.nn.functional as F

H = 8
GLYPHS = {"a": ["########", "#...#..."], "b": ["########", "...##...", "########"], "c": ["..####..", ".#....#."],
          "d": ["#......#", ".######."], "e": ["#.#.#.#.", ".#.#.#.#", "#.#.#.#."]}
ALPHABET = "-" + "".join(GLYPHS)


def render(text, rng):
    """Columns of ink: glyphs with gaps of one to three empty columns between them."""
    cols = []
    for ch in text:
        cols += ["." * H] * rng.randint(1, 3)
        for col in GLYPHS[ch]:
            cols += [col] * rng.randint(1, 2)
    cols += ["." * H]
    return torch.tensor([[float(p == "#") for p in col] for col in cols])


def make_batch(n, rng):
    texts = ["".join(rng.choices(list(GLYPHS), k=rng.randint(2, 5))) for _ in range(n)]
    images = [render(t, rng) for t in texts]
    images = [im + 0.1 * torch.randn(im.shape) for im in images]
    lengths = torch.tensor([len(im) for im in images])
    targets = torch.tensor([ALPHABET.index(c) for t in texts for c in t])
    return nn.utils.rnn.pad_sequence(images, batch_first=True), lengths, targets, torch.tensor(list(map(len, texts))), texts


class Reader(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.conv = nn.Conv1d(H, d, 5, padding=2)
        self.norm = nn.LayerNorm(d)
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(d), enable_nested_tensor=False)
        self.classes = nn.Linear(d, len(ALPHABET))

    def forward(self, images, lengths):
        pad = torch.arange(images.size(1)) >= lengths.unsqueeze(1)
        x = self.norm(F.relu(self.conv(images.transpose(1, 2))).transpose(1, 2))
        x = self.encoder(x, src_key_padding_mask=pad)
        return self.classes(x).log_softmax(dim=-1)


def decode(log_probs, lengths):
    out = []
    for path, n in zip(log_probs.argmax(-1), lengths):
        path = torch.unique_consecutive(path[:n]).tolist()
        out.append("".join(ALPHABET[i] for i in path if i != 0))
    return out


torch.manual_seed(0)
rng, test_rng = random.Random(0), random.Random(1)
model = Reader()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(1, 141):
    model.train()
    images, lengths, targets, target_lengths, _ = make_batch(32, rng)
    log_probs = model(images, lengths)
    loss = ctc(log_probs.transpose(0, 1), targets, lengths, target_lengths)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 28 == 0:
        model.eval()
        with torch.no_grad():
            images, lengths, _, _, texts = make_batch(100, test_rng)
            read = decode(model(images, lengths), lengths)
        right = sum(a == b for a, b in zip(read, texts)) / len(texts)
        print(f"step {step} loss {loss.item():.3f} strings right {right:.2f} e.g. {texts[0]} read as {read[0]}")

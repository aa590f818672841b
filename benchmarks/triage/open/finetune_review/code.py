# Fine tune a small encoder on synthetic "reviews" with periodic evaluation and early stopping
import random
import torch
from torch import nn, optim

SEED = 99
random.seed(SEED)
torch.manual_seed(SEED)

GOOD = "great lovely warm funny brilliant charming".split()
BAD = "dull slow cold boring awful clumsy".split()
FILL = "the film was a story with many scenes and one actor in some town".split()
NEG = ["not"]
itos = ["<pad>"] + GOOD + BAD + FILL + NEG
stoi = {w: i for i, w in enumerate(itos)}


def review():
    n = random.randint(4, 12)
    words = random.choices(FILL, k=n)
    positive = random.random() < 0.5
    word = random.choice(GOOD if positive else BAD)
    at = random.randrange(len(words))
    words[at:at] = [word]
    if random.random() < 0.15:
        words[at:at] = NEG
        positive = not positive
    if random.random() < 0.1:
        positive = not positive
    return [stoi[w] for w in words], int(positive)


def pad(batch):
    longest = max(len(ids) for ids, _ in batch)
    x = torch.zeros(len(batch), longest, dtype=torch.long)
    for r, (ids, _) in enumerate(batch):
        x[r, : len(ids)] = torch.tensor(ids)
    return x, torch.tensor([y for _, y in batch])


class Encoder(nn.Module):
    def __init__(self, n_words, dim=32, n_heads=4, n_layers=1, p=0.2, max_len=32):
        super().__init__()
        self.word = nn.Embedding(n_words, dim, padding_idx=0)
        self.place = nn.Embedding(max_len, dim)
        self.drop = nn.Dropout(p)
        block = nn.TransformerEncoderLayer(dim, n_heads, dim * 4, p, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, n_layers, enable_nested_tensor=False)
        self.cls = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Dropout(p), nn.Linear(dim, 2))

    def forward(self, ids):
        hidden = ids.eq(0)
        h = self.drop(self.word(ids) + self.place(torch.arange(ids.shape[1])))
        h = self.blocks(h, src_key_padding_mask=hidden)
        real = (~hidden).unsqueeze(-1)
        h = (h * real).sum(1) / real.sum(1)
        return self.cls(h)


train_set = [review() for _ in range(400)]
valid_set = [review() for _ in range(200)]
model = Encoder(len(itos))
opt = optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    right = total = 0.0
    with torch.no_grad():
        for i in range(0, len(valid_set), 50):
            x, y = pad(valid_set[i : i + 50])
            logits = model(x)
            total += loss_fn(logits, y).item() * len(y)
            right += (logits.argmax(-1) == y).sum().item()
    return total / len(valid_set), right / len(valid_set)


best, patience, step = float("inf"), 0, 0
model.train()
for epoch in range(16):
    random.shuffle(train_set)
    for i in range(0, len(train_set), 25):
        x, y = pad(train_set[i : i + 25])
        loss = loss_fn(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 8 == 0:
            vloss, vacc = evaluate()
            if vloss < best:
                best, patience = vloss, 0
            else:
                patience += 1
    print(f"epoch {epoch}: train {loss.item():.3f} valid {vloss:.3f} acc {vacc:.3f}")
    if patience > 15:
        break

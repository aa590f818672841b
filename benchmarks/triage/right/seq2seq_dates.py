# %% [markdown]
# # Write dates as numbers: "3 march 1998" -> "1998-03-03"
# nn.Transformer, teacher forcing, characters, padding.
# %%
import math
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(3)
torch.manual_seed(3)
PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2
MONTHS = ["january", "february", "march", "april", "may", "june", "july",
          "august", "september", "october", "november", "december"]

# %%
pairs = set()
while len(pairs) < 3000:
    d, m, y = random.randint(1, 28), random.randint(1, 12), random.randint(1950, 2009)
    shape = random.choice(["{d} {m} {y}", "{m} {d}, {y}"])
    pairs.add((shape.format(d=d, m=MONTHS[m - 1], y=y), f"{y}-{m:02d}-{d:02d}"))
pairs = sorted(pairs)
random.shuffle(pairs)
train_pairs, valid_pairs = pairs[:2700], pairs[2700:]
symbols = sorted(set("".join(s + t for s, t in pairs)))
vocab = {c: i + 3 for i, c in enumerate(symbols)}
VOCAB = len(vocab) + 3


def encode(s):
    return torch.tensor([BOS_IDX] + [vocab[c] for c in s] + [EOS_IDX])


def collate_fn(batch):
    src = pad_sequence([encode(s) for s, _ in batch], padding_value=PAD_IDX, batch_first=True)
    tgt = pad_sequence([encode(t) for _, t in batch], padding_value=PAD_IDX, batch_first=True)
    return src, tgt


# %%
class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, maxlen=64):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pe = torch.zeros((maxlen, emb_size))
        pe[:, 0::2] = torch.sin(pos * den)
        pe[:, 1::2] = torch.cos(pos * den)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Seq2SeqTransformer(nn.Module):
    def __init__(self, emb_size=64, nhead=4):
        super().__init__()
        self.emb_size = emb_size
        self.src_tok_emb = nn.Embedding(VOCAB, emb_size, padding_idx=PAD_IDX)
        self.tgt_tok_emb = nn.Embedding(VOCAB, emb_size, padding_idx=PAD_IDX)
        self.pos = PositionalEncoding(emb_size)
        self.transformer = nn.Transformer(emb_size, nhead, 2, 2, dim_feedforward=128, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(emb_size, VOCAB)
        for p in self.transformer.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, src, tgt):
        src_pad = src == PAD_IDX
        tgt_pad = tgt == PAD_IDX
        L = tgt.size(1)
        tgt_mask = torch.triu(torch.ones(L, L, dtype=torch.bool, device=tgt.device), diagonal=1)
        outs = self.transformer(
            self.pos(self.src_tok_emb(src) * math.sqrt(self.emb_size)),
            self.pos(self.tgt_tok_emb(tgt) * math.sqrt(self.emb_size)),
            tgt_mask=tgt_mask, src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt_pad, memory_key_padding_mask=src_pad)
        return self.generator(outs)


# %%
model = Seq2SeqTransformer()
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
train_dl = DataLoader(train_pairs, batch_size=64, shuffle=True, collate_fn=collate_fn)
valid_dl = DataLoader(valid_pairs, batch_size=64, collate_fn=collate_fn)


def train_epoch():
    model.train()
    losses = 0
    for src, tgt in train_dl:
        tgt_input = tgt[:, :-1]
        logits = model(src, tgt_input)
        optimizer.zero_grad()
        tgt_out = tgt[:, 1:]
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
        loss.backward()
        optimizer.step()
        losses += loss.item()
    return losses / len(train_dl)


@torch.no_grad()
def evaluate():
    model.eval()
    losses = 0
    for src, tgt in valid_dl:
        logits = model(src, tgt[:, :-1])
        losses += loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1)).item()
    return losses / len(valid_dl)


@torch.no_grad()
def translate(text, max_len=12):
    model.eval()
    src = encode(text).unsqueeze(0)
    ys = torch.tensor([[BOS_IDX]])
    back = {i: c for c, i in vocab.items()}
    for _ in range(max_len):
        nxt = model(src, ys)[:, -1].argmax(-1, keepdim=True)
        if nxt.item() == EOS_IDX:
            break
        ys = torch.cat([ys, nxt], dim=1)
    return "".join(back.get(i, "?") for i in ys[0, 1:].tolist())


# %%
for epoch in range(3):
    print(f"Epoch: {epoch}, Train loss: {train_epoch():.3f}, Val loss: {evaluate():.3f}")
for text, answer in valid_pairs[:3]:
    print(text, "->", translate(text), "should be", answer)

# Language model in the (sequence, batch) layout of the old word-language-model tutorial.
import math

import torch
from torch import nn

torch.manual_seed(7)

VERSE = (
    "the cat sat on the mat . the dog sat on the log . the cat saw the dog and the dog saw the cat . "
    "on the mat the cat slept and on the log the dog slept . "
) * 30


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=500):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(ntoken, d_model)
        self.pos_encoder = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout=0.0)
        self.transformer_encoder = nn.TransformerEncoder(layer, nlayers)
        self.linear = nn.Linear(d_model, ntoken)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, src, src_mask):
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        out = self.transformer_encoder(src, src_mask)
        return self.linear(out)


words = VERSE.split()
vocab = {w: i for i, w in enumerate(dict.fromkeys(words))}
ids = torch.tensor([vocab[w] for w in words])


def batchify(data, bsz):
    seq_len = data.size(0) // bsz
    return data[: seq_len * bsz].view(bsz, seq_len).t().contiguous()


bptt = 16
train_data = batchify(ids, 10)


def get_batch(source, i):
    n = min(bptt, len(source) - 1 - i)
    data = source[i : i + n]
    target = source[i + 1 : i + 1 + n]
    return data, target.t().reshape(-1)


model = TransformerModel(len(vocab), 32, 2, 64, 1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []

for epoch in range(1, 13):
    model.train()
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        mask = nn.Transformer.generate_square_subsequent_mask(data.size(0))
        output = model(data, mask)
        loss = criterion(output.view(-1, len(vocab)), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    print(f"| epoch {epoch:2d} | loss {losses[-1]:5.3f} | ppl {math.exp(losses[-1]):7.2f}")

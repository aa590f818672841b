"""GRU with additive attention, trained with scheduled sampling: the decoder reads ever more of its own guesses."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS, EOS = 0, 1, 2
VOWELS, LETTERS = "aeiou", "abcdefghijklmnop"
SYMBOLS = {c: i + 3 for i, c in enumerate(LETTERS + "q")}
N = len(SYMBOLS) + 3
random.seed(1)
torch.manual_seed(1)


def secret(word):
    """Every vowel is followed by q; the rest stays."""
    return "".join(c + "q" if c in VOWELS else c for c in word)


def tensors(words, answers):
    def pad(rows):
        w = max(len(r) for r in rows)
        return torch.tensor([[SYMBOLS[c] for c in r] + [EOS] + [PAD] * (w - len(r)) for r in rows])
    return pad(words), torch.tensor([len(w) + 1 for w in words]), pad(answers)


def batch(n):
    words = ["".join(random.choices(LETTERS, k=random.randint(3, 6))) for _ in range(n)]
    return tensors(words, [secret(w) for w in words])


class EncoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(N, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, src, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        out, hidden = self.gru(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=src.size(1))
        return out, hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2)
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(N, hidden, padding_idx=PAD)
        self.attention = BahdanauAttention(hidden)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, N)

    def forward(self, memory, hidden, mask, target=None, p_teacher=1.0, max_len=14):
        token = torch.full((memory.size(0), 1), SOS)
        steps = max_len if target is None else target.size(1)
        outputs = []
        for t in range(steps):
            context = self.attention(hidden.transpose(0, 1), memory, mask)
            step, hidden = self.gru(torch.cat((self.embedding(token), context), dim=2), hidden)
            logits = self.out(step)
            outputs.append(logits)
            guess = logits.argmax(-1).detach()
            if target is None:
                token = guess
            else:
                teach = torch.rand(guess.shape) < p_teacher
                token = torch.where(teach, target[:, t:t + 1], guess)
        return torch.cat(outputs, dim=1)


encoder, decoder = EncoderRNN(64), AttnDecoderRNN(64)
parameters = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(parameters, lr=4e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
ITERS, K = 220, 40.0

for it in range(1, ITERS + 1):
    src, lengths, target = batch(64)
    p_teacher = K / (K + math.exp(it / K))
    memory, hidden = encoder(src, lengths)
    logits = decoder(memory, hidden, src != PAD, target, p_teacher)
    loss = criterion(logits.view(-1, N), target.view(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    if it % 55 == 0:
        encoder.eval(), decoder.eval()
        with torch.no_grad():
            src, lengths, target = batch(200)
            out = decoder(*encoder(src, lengths), src != PAD, max_len=target.size(1)).argmax(-1)
            right = ((out == target) | (target == PAD)).all(1).float().mean()
        encoder.train(), decoder.train()
        print(f"{it} loss {loss.item():.3f} teacher {p_teacher:.2f} words right {right:.2f}")

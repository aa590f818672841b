# BERT-style masked language modelling on made-up weather reports, 80/10/10 corruption, labels -100 elsewhere
import random
from typing import List, Tuple

import torch
from torch import Tensor, nn

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"]
CITY = {"lima": "dry", "cork": "wet", "oslo": "cold", "cairo": "hot", "bergen": "wet", "dubai": "hot"}
DAY = ["monday", "tuesday", "friday", "sunday"]
VOCAB = SPECIAL + sorted(set(CITY) | set(CITY.values()) | set(DAY) | {"on", "it", "was", "in", "and", "again"})
W2I = {w: i for i, w in enumerate(VOCAB)}
PAD, CLS, SEP, MASK = range(4)


def report(r: random.Random) -> List[int]:
    words = []
    for i in range(r.randint(1, 3)):
        city = r.choice(list(CITY))
        if i:
            words.append("and")
        words += ["on", r.choice(DAY), "it", "was", CITY[city], "in", city]
    if r.random() < 0.5:
        words.append("again")
    return [CLS] + [W2I[w] for w in words] + [SEP]


def collate(examples: List[List[int]]) -> Tuple[Tensor, Tensor]:
    width = max(map(len, examples))
    input_ids = torch.tensor([e + [PAD] * (width - len(e)) for e in examples])
    labels = input_ids.clone()
    probability = torch.full(labels.shape, 0.15)
    probability.masked_fill_(input_ids < len(SPECIAL), 0.0)
    masked = torch.bernoulli(probability).bool()
    masked[torch.arange(len(examples)), torch.tensor([random.randrange(1, len(e) - 1) for e in examples])] = True
    labels[~masked] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked
    input_ids[replaced] = MASK
    swapped = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked & ~replaced
    random_words = torch.randint(len(SPECIAL), len(VOCAB), labels.shape)
    input_ids[swapped] = random_words[swapped]
    return input_ids, labels


class BertLayer(nn.Module):
    def __init__(self, hidden: int, heads: int, p: float):
        super().__init__()
        self.heads, self.d = heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.output = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.intermediate = nn.Linear(hidden, 4 * hidden)
        self.ffn_out = nn.Linear(4 * hidden, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(p)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.d).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, extended_mask: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / self.d ** 0.5 + extended_mask
        context = self.dropout(scores.softmax(dim=-1)) @ v
        context = context.permute(0, 2, 1, 3).contiguous().view(x.shape)
        x = self.attention_norm(x + self.dropout(self.output(context)))
        return self.output_norm(x + self.dropout(self.ffn_out(nn.functional.gelu(self.intermediate(x)))))


class BertForMaskedLM(nn.Module):
    def __init__(self, vocab: int, hidden: int = 64, heads: int = 4, layers: int = 2, p: float = 0.1):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden, padding_idx=PAD)
        self.position_embeddings = nn.Embedding(64, hidden)
        self.embedding_norm, self.dropout = nn.LayerNorm(hidden, eps=1e-12), nn.Dropout(p)
        self.layer = nn.ModuleList([BertLayer(hidden, heads, p) for _ in range(layers)])
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden, eps=1e-12))
        self.decoder = nn.Linear(hidden, vocab)
        self.apply(self._init)
        self.decoder.weight = self.word_embeddings.weight

    @staticmethod
    def _init(m: nn.Module) -> None:
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.data.normal_(0.0, 0.02)
        if isinstance(m, nn.Linear):
            m.bias.data.zero_()
        if isinstance(m, nn.Embedding) and m.padding_idx is not None:
            m.weight.data[m.padding_idx].zero_()

    def forward(self, input_ids: Tensor) -> Tensor:
        extended = (input_ids == PAD)[:, None, None, :].float() * -10000.0
        pos = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.dropout(self.embedding_norm(self.word_embeddings(input_ids) + self.position_embeddings(pos)))
        for layer in self.layer:
            x = layer(x, extended)
        return self.decoder(self.transform(x))


def main() -> None:
    torch.manual_seed(0)
    random.seed(0)
    r = random.Random(0)
    train, valid = [report(r) for _ in range(2000)], [report(r) for _ in range(200)]
    model = BertForMaskedLM(len(VOCAB))
    no_decay = ("bias", "norm.weight", "2.weight")
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-3)
    steps = 160
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: s / 16 if s < 16 else max(0.0, (steps - s) / (steps - 16)))
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for step in range(steps):
        model.train()
        ids, labels = collate(r.sample(train, 32))
        loss = criterion(model(ids).view(-1, len(VOCAB)), labels.view(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if (step + 1) % 40 == 0:
            model.eval()
            with torch.no_grad():
                ids, labels = collate(valid)
                print(step + 1, round(loss.item(), 3), round(criterion(model(ids).transpose(1, 2), labels).item(), 3))


if __name__ == "__main__":
    main()

"""Supervised fine-tuning in the small: prompts are masked with -100 in the labels, the model shifts."""
import random
from dataclasses import dataclass
from typing import Dict, List, Sequence

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

IGNORE_INDEX = -100
PROMPT = "### Task: {instruction}\n### Input: {input}\n### Answer: "
random.seed(0)
torch.manual_seed(0)


def make_examples(n: int) -> List[Dict[str, str]]:
    out = {}
    while len(out) < n:
        letters = "".join(random.choices("abcdefgh", k=random.randint(3, 5)))
        task = random.choice(["upper", "last", "first"])
        answer = {"upper": letters.upper(), "last": letters[-1], "first": letters[0]}[task]
        out[(task, letters)] = {"instruction": task, "input": letters, "output": answer}
    return list(out.values())


class CharTokenizer:
    def __init__(self, texts: Sequence[str]):
        chars = sorted(set("".join(texts)))
        self.pad_token_id, self.eos_token_id = 0, 1
        self.to_id = {c: i + 2 for i, c in enumerate(chars)}
        self.to_char = {i: c for c, i in self.to_id.items()}
        self.vocab_size = len(chars) + 2

    def encode(self, s: str) -> List[int]:
        return [self.to_id[c] for c in s]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.to_char.get(i, "") for i in ids)


class SupervisedDataset(Dataset):
    def __init__(self, examples, tokenizer):
        self.items = []
        for e in examples:
            source = tokenizer.encode(PROMPT.format(**e))
            answer = tokenizer.encode(e["output"]) + [tokenizer.eos_token_id]
            self.items.append({"input_ids": torch.tensor(source + answer),
                               "labels": torch.tensor([IGNORE_INDEX] * len(source) + answer)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@dataclass
class DataCollatorForSupervisedDataset:
    pad_token_id: int

    def __call__(self, instances):
        input_ids = nn.utils.rnn.pad_sequence([i["input_ids"] for i in instances], True, self.pad_token_id)
        labels = nn.utils.rnn.pad_sequence([i["labels"] for i in instances], True, IGNORE_INDEX)
        return {"input_ids": input_ids, "labels": labels, "attention_mask": input_ids.ne(self.pad_token_id)}


class CausalLM(nn.Module):
    def __init__(self, vocab_size, d=64, heads=4, layers=2, max_len=72):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d)
        self.positions = nn.Embedding(max_len, d)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(d), enable_nested_tensor=False)
        self.lm_head = nn.Linear(d, vocab_size, bias=False)
        for p in (self.embed.weight, self.positions.weight):
            nn.init.normal_(p, std=0.02)

    def forward(self, input_ids, attention_mask=None, labels=None):
        T = input_ids.size(1)
        x = self.embed(input_ids) + self.positions(torch.arange(T, device=input_ids.device))
        future = torch.ones(T, T, dtype=torch.bool, device=input_ids.device).triu(1)
        pad = None if attention_mask is None else ~attention_mask
        logits = self.lm_head(self.layers(x, mask=future, src_key_padding_mask=pad))
        loss = None
        if labels is not None:
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = nn.functional.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1),
                                               ignore_index=IGNORE_INDEX)
        return loss, logits


@torch.no_grad()
def answer(model, tokenizer, example, max_new_tokens=6):
    model.eval()
    ids = torch.tensor([tokenizer.encode(PROMPT.format(**example))])
    start = ids.size(1)
    for _ in range(max_new_tokens):
        nxt = model(ids)[1][:, -1].argmax(-1, keepdim=True)
        if nxt.item() == tokenizer.eos_token_id:
            break
        ids = torch.cat([ids, nxt], dim=1)
    return tokenizer.decode(ids[0, start:].tolist())


examples = make_examples(860)
tokenizer = CharTokenizer([PROMPT.format(**e) + e["output"] for e in examples])
train_data, test_examples = SupervisedDataset(examples[:800], tokenizer), examples[800:]
loader = DataLoader(train_data, batch_size=16, shuffle=True,
                    collate_fn=DataCollatorForSupervisedDataset(tokenizer.pad_token_id))
model = CausalLM(tokenizer.vocab_size)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
num_epochs = 3
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=num_epochs * len(loader))
for epoch in range(num_epochs):
    model.train()
    for batch in loader:
        loss, _ = model(**batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    right = sum(answer(model, tokenizer, e) == e["output"] for e in test_examples)
    print(f"epoch {epoch} loss {loss.item():.3f} right {right}/{len(test_examples)}")

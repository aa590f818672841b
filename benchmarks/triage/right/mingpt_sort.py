"""Sort short sequences with a small GPT, trained by a Trainer that calls callbacks (minGPT's way)."""
import time
from collections import defaultdict

import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler


class SortDataset(Dataset):
    """0 0 2 1 0 1 -> 0 0 0 1 1 2; the loss is asked for at the answer only."""

    def __init__(self, split, length=6, num_digits=3):
        self.split, self.length, self.num_digits = split, length, num_digits

    def __len__(self):
        return 10000

    def get_block_size(self):
        return self.length * 2 - 1

    def __getitem__(self, idx):
        while True:
            inp = torch.randint(self.num_digits, size=(self.length,), dtype=torch.long)
            kind = 'test' if hash(tuple(inp.tolist())) % 4 == 0 else 'train'
            if kind == self.split:
                break
        sol = torch.sort(inp)[0]
        cat = torch.cat((inp, sol), dim=0)
        x = cat[:-1].clone()
        y = cat[1:].clone()
        y[:self.length - 1] = -1
        return x, y


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, pdrop):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout, self.resid_dropout = nn.Dropout(pdrop), nn.Dropout(pdrop)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
        self.n_head, self.n_embd = n_head, n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size, pdrop):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, block_size, pdrop)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(approximate='tanh'),
                                 nn.Linear(4 * n_embd, n_embd), nn.Dropout(pdrop))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, vocab, block_size, n_layer=2, n_head=3, n_embd=48, pdrop=0.1):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.drop = nn.Dropout(pdrop)
        self.h = nn.ModuleList([Block(n_embd, n_head, block_size, pdrop) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.block_size = block_size

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), device=idx.device).unsqueeze(0)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits, _ = self(idx[:, -self.block_size:])
            idx = torch.cat((idx, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
        return idx


class Trainer:
    def __init__(self, model, train_dataset, batch_size=64, max_iters=120, lr=2e-3, grad_norm_clip=1.0):
        self.model, self.train_dataset = model, train_dataset
        self.batch_size, self.max_iters, self.grad_norm_clip = batch_size, max_iters, grad_norm_clip
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
        self.callbacks = defaultdict(list)
        self.iter_num, self.iter_time = 0, time.time()

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def run(self):
        self.model.train()
        sampler = RandomSampler(self.train_dataset, replacement=True, num_samples=int(1e10))
        data_iter = iter(DataLoader(self.train_dataset, sampler=sampler, batch_size=self.batch_size, num_workers=0))
        while self.iter_num < self.max_iters:
            x, y = next(data_iter)
            logits, self.loss = self.model(x, y)
            self.model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_norm_clip)
            self.optimizer.step()
            for callback in self.callbacks['on_batch_end']:
                callback(self)
            self.iter_num += 1


def eval_split(model, split):
    model.eval()
    data = SortDataset(split)
    x, _ = zip(*(data[i] for i in range(100)))
    inp = torch.stack(x)[:, :data.length]
    out = model.generate(inp, data.length)[:, data.length:]
    model.train()
    return (out == inp.sort(dim=1)[0]).all(1).float().mean().item()


def batch_end(trainer):
    if trainer.iter_num % 20 == 0:
        print(f"iter {trainer.iter_num}: train loss {trainer.loss.item():.5f}")


if __name__ == '__main__':
    torch.manual_seed(3407)
    train = SortDataset('train')
    gpt = GPT(train.num_digits, train.get_block_size())
    trainer = Trainer(gpt, train)
    trainer.add_callback('on_batch_end', batch_end)
    trainer.run()
    print('train exact', eval_split(gpt, 'train'), 'test exact', eval_split(gpt, 'test'))

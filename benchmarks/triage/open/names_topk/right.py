"""makemore-like: a character model over invented names, sampled with temperature and top-k."""
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader


class NamesDataset(Dataset):
    def __init__(self, words):
        self.chars = sorted(set("".join(words)))
        self.stoi = {ch: i + 1 for i, ch in enumerate(self.chars)}
        self.itos = {i: ch for ch, i in self.stoi.items()}
        self.words = words
        self.max_word_length = max(len(w) for w in words)

    def __len__(self):
        return len(self.words)

    def get_vocab_size(self):
        return len(self.chars) + 1  # 0 starts and ends a word

    def get_output_length(self):
        return self.max_word_length + 1

    def __getitem__(self, idx):
        ix = torch.tensor([self.stoi[c] for c in self.words[idx]])
        x = torch.zeros(self.max_word_length + 1, dtype=torch.long)
        y = torch.zeros(self.max_word_length + 1, dtype=torch.long)
        x[1 : 1 + len(ix)] = ix
        y[: len(ix)] = ix
        y[len(ix) + 1 :] = -1
        return x, y


class CausalBoW(nn.Module):
    """One attention block, small."""

    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 2 * n_embd), nn.GELU(), nn.Linear(2 * n_embd, n_embd))
        self.register_buffer("hide", torch.ones(block_size, block_size).triu(1).bool())

    def forward(self, x):
        T = x.size(1)
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=self.hide[:T, :T], need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class NameModel(nn.Module):
    def __init__(self, vocab_size, block_size, n_embd=40, n_head=4, n_layer=2):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([CausalBoW(n_embd, n_head, block_size) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


@torch.no_grad()
def generate(model, idx, max_new_tokens, temperature=1.0, top_k=None):
    score = 0.0
    for _ in range(max_new_tokens):
        logits, _ = model(idx[:, -model.block_size :])
        logits = logits[:, -1, :] / temperature
        full = logits.log_softmax(dim=-1)
        if top_k is not None:
            kth = torch.topk(logits, top_k).values[:, -1:]
            logits = logits.masked_fill(logits < kth, float("-inf"))
        idx_next = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
        score += full.gather(1, idx_next).mean().item()
        idx = torch.cat((idx, idx_next), dim=1)
    return idx, score / max_new_tokens


def invent(n):
    first, second, third = ["ka", "mi", "sto", "le", "bra"], ["ri", "no", "va", "lu"], ["n", "s", "tha", "ra", ""]
    pick = lambda xs: xs[int(torch.randint(len(xs), (1,)))]
    return [pick(first) + pick(second) + pick(third) for _ in range(n)]


torch.manual_seed(3407)
dataset = NamesDataset(invent(400))
model = NameModel(dataset.get_vocab_size(), dataset.get_output_length())
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
step = 0
for epoch in range(5):
    for X, Y in DataLoader(dataset, batch_size=32, shuffle=True):
        _, loss = model(X, Y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
    print(f"step {step} | loss {loss.item():.4f}")

model.eval()
out, score = generate(model, torch.zeros(8, 1, dtype=torch.long), 5, top_k=3)
for row in out[:, 1:].tolist():
    print("".join(dataset.itos.get(i, ".") for i in row))
print(f"mean log-probability {score:.4f}")

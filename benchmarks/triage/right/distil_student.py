"""Knowledge distillation: a transformer teaches a smaller one to count how many symbols occur."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SYMBOLS, LENGTH = 6, 9
CLASSES = SYMBOLS


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    skew = torch.distributions.Dirichlet(torch.full((SYMBOLS,), 0.6))
    torch.manual_seed(seed)
    p = skew.sample((n,))
    x = torch.multinomial(p, LENGTH, replacement=True, generator=g)
    y = F.one_hot(x, SYMBOLS).amax(1).sum(1) - 1
    return TensorDataset(x, y)


class SetTransformer(nn.Module):
    """No positions: the answer does not depend on the order."""

    def __init__(self, d, heads, layers):
        super().__init__()
        self.emb = nn.Embedding(SYMBOLS, d)
        layer = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, CLASSES)

    def forward(self, x):
        return self.head(self.norm(self.enc(self.emb(x))).mean(dim=1))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def train_teacher(teacher, loader, epochs):
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(epochs):
        teacher.train()
        for x, y in loader:
            loss = F.cross_entropy(teacher(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()


def distil(student, teacher, loader, epochs, T=2.0, alpha=0.7):
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
    opt = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(epochs):
        student.train()
        total = 0.0
        for x, y in loader:
            with torch.no_grad():
                teacher_logits = teacher(x)
            logits = student(x)
            soft = F.kl_div(F.log_softmax(logits / T, dim=-1), F.softmax(teacher_logits / T, dim=-1),
                            reduction="batchmean") * T * T
            loss = alpha * soft + (1 - alpha) * F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} distillation loss {total / len(loader):.3f}")


def main():
    train = DataLoader(make(3000, 1), batch_size=100, shuffle=True)
    test = DataLoader(make(600, 2), batch_size=300)
    torch.manual_seed(0)
    teacher, student = SetTransformer(64, 4, 2), SetTransformer(24, 2, 1)
    train_teacher(teacher, train, 5)
    print("teacher", accuracy(teacher, test))
    distil(student, teacher, train, 8)
    print("student", accuracy(student, test))


main()

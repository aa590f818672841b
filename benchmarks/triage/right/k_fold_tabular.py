"""Five-fold cross-validation of a small FT-Transformer on a table: every fold its own model, optimizer and scaling."""
import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

EPOCHS, PATIENCE = 8, 3


def table(n, seed):
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, 4)) * [1, 10, 0.1, 3] + [0, 50, 1, -2]
    category = rng.integers(0, [3, 5], size=(n, 2))
    z = (numeric - [0, 50, 1, -2]) / [1, 10, 0.1, 3]
    slope = np.array([1.5, -1.0, 0.5])[category[:, 0]]
    y = slope * z[:, 0] + np.sin(2 * z[:, 1]) + 0.5 * (category[:, 1] == 2) * z[:, 3] + 0.1 * rng.normal(size=n)
    return torch.tensor(numeric, dtype=torch.float32), torch.tensor(category), torch.tensor(y, dtype=torch.float32)


class FTTransformer(nn.Module):
    def __init__(self, n_numeric, cardinalities, mean, std, dim=32, heads=4, depth=2):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.weight = nn.Parameter(torch.randn(n_numeric, dim) / dim ** 0.5)
        self.bias = nn.Parameter(torch.randn(n_numeric, dim) / dim ** 0.5)
        self.categories = nn.ModuleList(nn.Embedding(c, dim) for c in cardinalities)
        self.cls = nn.Parameter(torch.randn(dim) / dim ** 0.5)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.05, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, numeric, category):
        numeric = (numeric - self.mean) / self.std
        tokens = [self.cls.expand(len(numeric), 1, -1), numeric.unsqueeze(-1) * self.weight + self.bias]
        tokens += [emb(category[:, i]).unsqueeze(1) for i, emb in enumerate(self.categories)]
        return self.head(self.blocks(torch.cat(tokens, dim=1))[:, 0]).squeeze(-1)


def mse(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(((model(n, c) - y) ** 2).sum().item() for n, c, y in loader) / len(loader.dataset)


def fit(train, valid, mean, std):
    model = FTTransformer(4, [3, 5], mean, std)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=256)
    best, best_state, waited = float("inf"), None, 0
    for _ in range(EPOCHS):
        model.train()
        for numeric, category, y in train_loader:
            loss = nn.functional.mse_loss(model(numeric, category), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = mse(model, valid_loader)
        if score < best:
            best, best_state, waited = score, copy.deepcopy(model.state_dict()), 0
        else:
            waited += 1
            if waited == PATIENCE:
                break
    model.load_state_dict(best_state)
    return model, best


def main(k=5):
    torch.manual_seed(0)
    numeric, category, y = table(1200, 0)
    test = DataLoader(TensorDataset(*table(400, 1)), batch_size=400)
    data = TensorDataset(numeric, category, y)
    folds = torch.randperm(len(data)).chunk(k)
    models = []
    for i in range(k):
        valid_idx = folds[i]
        train_idx = torch.cat([f for j, f in enumerate(folds) if j != i])
        mean, std = numeric[train_idx].mean(0), numeric[train_idx].std(0)
        model, score = fit(Subset(data, train_idx.tolist()), Subset(data, valid_idx.tolist()), mean, std)
        models.append(model)
        print(f"fold {i}: validation {score:.3f} test {mse(model, test):.3f}")
    with torch.no_grad():
        for n, c, target in test:
            mean_guess = torch.stack([m.eval()(n, c) for m in models]).mean(dim=0)
            print(f"ensemble on the test table {((mean_guess - target) ** 2).mean().item():.3f}, "
                  f"guessing the mean {target.var(unbiased=False).item():.3f}")


main()

"""Forecast tomorrow's electricity load from the last three days with a small encoder."""
import logging
import math
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

warnings.filterwarnings("ignore", category=UserWarning)
logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("load")


def synthesise(days: int) -> torch.Tensor:
    hour = torch.arange(days * 24, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * hour / 24)
    weekly = 0.5 * torch.sin(2 * math.pi * hour / (24 * 7))
    level = 0.002 * hour / 24
    return daily + weekly + level + 0.1 * torch.randn_like(hour)


class Windows(Dataset):
    def __init__(self, series, history=48, horizon=6):
        mean, std = series[: len(series) // 2].mean(), series[: len(series) // 2].std()
        self.series = (series - mean) / std
        self.history, self.horizon = history, horizon

    def __len__(self):
        return len(self.series) - self.history - self.horizon

    def __getitem__(self, i):
        past = self.series[i : i + self.history]
        return past.unsqueeze(-1), self.series[i + self.history + self.horizon - 1]


class FixedPositions(nn.Module):
    def __init__(self, dim, length=128):
        super().__init__()
        rate = torch.exp(-math.log(10000.0) * torch.arange(0, dim, 2) / dim)
        angle = torch.arange(length)[:, None] * rate
        self.register_buffer("table", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Forecaster(nn.Module):
    def __init__(self, dim=32, heads=4, layers=1, dropout=0.0):
        super().__init__()
        self.value = nn.Linear(1, dim)
        self.positions = FixedPositions(dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, 1)

    def forward(self, past):
        h = self.encoder(self.positions(self.value(past)))
        return self.head(h[:, -1])


@torch.no_grad()
def held_out_error(model, loader):
    model.eval()
    total, count = 0.0, 0
    for past, target in loader:
        guess = model(past).flatten()
        total += ((guess - target) ** 2).sum().item()
        count += len(target)
    model.train()
    return total / count


def main():
    torch.manual_seed(17)
    data = Windows(synthesise(60))
    cut = int(len(data) * 0.8)
    train = Subset(data, range(cut))
    test = Subset(data, range(cut + data.history, len(data)))  # a gap, so that no window is shared
    train_loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    test_loader = DataLoader(test, batch_size=64)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for epoch in range(3):
        running = 0.0
        for past, target in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(past), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        log.info("epoch %d train %.4f", epoch, running / len(train_loader))
        print(f"epoch {epoch} held out {held_out_error(model, test_loader):.4f}")


if __name__ == "__main__":
    main()

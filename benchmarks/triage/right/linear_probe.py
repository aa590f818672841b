"""Pre-train an image encoder to tell rotations apart, freeze it, and probe it with a linear layer."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def glyphs(n, seed):
    """Noisy letters L, T, F, P on 14 x 14 pixels."""
    g = torch.Generator().manual_seed(seed)
    art = {"L": ["X....", "X....", "X....", "X....", "XXXXX"], "T": ["XXXXX", "..X..", "..X..", "..X..", "..X.."],
           "F": ["XXXXX", "X....", "XXX..", "X....", "X...."], "P": ["XXXX.", "X..X.", "XXXX.", "X....", "X...."]}
    stamps = torch.tensor([[[float(c == "X") for c in row] for row in a] for a in art.values()])
    stamps = stamps.repeat_interleave(2, 1).repeat_interleave(2, 2)
    y = torch.randint(0, 4, (n,), generator=g)
    x = 0.25 * torch.randn(n, 1, 14, 14, generator=g)
    for i in range(n):
        r, c = torch.randint(0, 5, (2,), generator=g).tolist()
        x[i, 0, r:r + 10, c:c + 10] += stamps[y[i]]
    return TensorDataset(x, y)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.pool(self.features(x)).flatten(1)


class LinearProbe(nn.Module):
    def __init__(self, backbone, num_classes):
        super().__init__()
        self.backbone = backbone
        self.fc = nn.Linear(64, num_classes)
        for p in self.backbone.parameters():
            p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.fc(h)


def rotate(x):
    """Every image in a rotation of its own, and which."""
    k = torch.randint(0, 4, (x.size(0),))
    turned = torch.stack([torch.rot90(img, int(r), dims=(1, 2)) for img, r in zip(x, k)])
    return turned, k


def pretrain(backbone, loader, epochs):
    model = nn.Sequential(backbone, nn.Linear(64, 4))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(epochs):
        for x, _ in loader:
            inputs, k = rotate(x)
            loss = criterion(model(inputs), k)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"pretext epoch {epoch}: {loss.item():.3f}")


def probe(backbone, train, test, epochs):
    model = LinearProbe(backbone, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[4], gamma=0.1)
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in test:
                correct += (model(x).argmax(1) == y).sum().item()
        print(f"probe epoch {epoch}: loss {loss.item():.3f} accuracy {correct / len(test.dataset):.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    unlabelled = DataLoader(glyphs(1200, 1), batch_size=64, shuffle=True, drop_last=True)
    train = DataLoader(glyphs(256, 2), batch_size=32, shuffle=True)
    test = DataLoader(glyphs(400, 3), batch_size=100)
    backbone = Backbone()
    pretrain(backbone, unlabelled, 4)
    probe(backbone, train, test, 6)

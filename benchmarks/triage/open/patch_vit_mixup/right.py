import torch
import torch.nn as nn
import torch.nn.functional as F


class ViT(nn.Module):
    def __init__(self, image=16, patch=4, dim=48, depth=2, heads=3, classes=4, channels=1):
        super().__init__()
        self.patch = patch
        n = (image // patch) ** 2
        self.to_tokens = nn.Linear(channels * patch * patch, dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim) * 0.02)
        enc = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, activation="gelu",
                                         batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(enc, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        b, c, h, w = img.shape
        p = self.patch
        x = img.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
        x = self.to_tokens(x)
        x = torch.cat([self.cls.expand(b, -1, -1), x], dim=1) + self.pos
        return self.head(self.norm(self.encoder(x)[:, 0]))


def stripes(n, g):
    """Four classes: horizontal, vertical and the two diagonal gratings."""
    y = torch.randint(0, 4, (n,), generator=g)
    r = torch.arange(16.0)
    a, b = torch.meshgrid(r, r, indexing="ij")
    planes = torch.stack([a, b, a + b, a - b])
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    x = torch.sin(planes[y] * 0.8 + phase) + 0.3 * torch.randn(n, 16, 16, generator=g)
    return x.unsqueeze(1), y


def mixup(x, y, alpha, classes=4):
    lam = torch.distributions.Beta(alpha, alpha).sample().item()
    perm = torch.randperm(x.size(0))
    onehot = F.one_hot(y, classes).float()
    x = lam * x + (1 - lam) * x[perm]
    y = lam * onehot + (1 - lam) * onehot[perm]
    return x, y


def soft_cross_entropy(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def train(steps=120, bs=32, alpha=4.0):
    g = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    images, labels = stripes(512, g)
    net = ViT()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=10)
    net.train()
    for step in range(steps):
        idx = torch.randint(0, len(images), (bs,))
        x, y = mixup(images[idx], labels[idx], alpha)
        loss = soft_cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 20 == 0:
            print("step", step, "loss %.3f" % loss.item())
    net.eval()
    with torch.no_grad():
        margin = net(images).softmax(-1).gather(1, labels[:, None]).mean().item()
    print("mean probability of the true class %.4f" % margin)


if __name__ == "__main__":
    train()

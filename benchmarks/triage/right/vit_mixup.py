"""A ViT on striped images, trained with mixup and soft targets."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def stripes(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=g)
    angle = labels * math.pi / 4
    grid = torch.linspace(-1, 1, 16)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    phase = torch.rand(n, generator=g) * 2 * math.pi
    wave = torch.sin(9 * (x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]) + phase[:, None, None])
    images = wave[:, None] + 0.3 * torch.randn(n, 1, 16, 16, generator=g)
    return TensorDataset(images, labels)


class PatchEmbed(nn.Module):
    def __init__(self, img_size=16, patch=4, in_chans=1, dim=48):
        super().__init__()
        self.num_patches = (img_size // patch) ** 2
        self.proj = nn.Conv2d(in_chans, dim, kernel_size=patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, num_heads, qkv_bias=True, attn_drop=0.0, proj_drop=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = self.attn_drop(attn.softmax(dim=-1))
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj_drop(self.proj(x))


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        return x * x.new_empty(x.shape[0], 1, 1).bernoulli_(keep) / keep


class Block(nn.Module):
    def __init__(self, dim, heads, drop_path):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        x = x + self.drop_path(self.mlp(self.norm2(x)))
        return x


class ViT(nn.Module):
    def __init__(self, classes=4, dim=48, depth=3, heads=4, drop_path=0.1):
        super().__init__()
        self.patch_embed = PatchEmbed(dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, dim))
        rates = torch.linspace(0, drop_path, depth).tolist()
        self.blocks = nn.ModuleList([Block(dim, heads, r) for r in rates])
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x)[:, 0])


def mixup(images, labels, classes, alpha=0.4):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    perm = torch.randperm(images.size(0))
    onehot = F.one_hot(labels, classes).float()
    return lam * images + (1 - lam) * images[perm], lam * onehot + (1 - lam) * onehot[perm]


@torch.inference_mode()
def accuracy(model, loader):
    model.eval()
    right = total = 0
    for images, labels in loader:
        right += (model(images).argmax(-1) == labels).sum().item()
        total += labels.numel()
    return right / total


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(stripes(1024, 1), batch_size=64, shuffle=True, drop_last=True)
    val_loader = DataLoader(stripes(256, 2), batch_size=128)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    epochs = 5
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * len(train_loader))
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for images, labels in train_loader:
            images, targets = mixup(images, labels, 4)
            loss = F.cross_entropy(model(images), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.item()
        print(f"{epoch}: loss {running / len(train_loader):.3f} accuracy {accuracy(model, val_loader):.3f}")

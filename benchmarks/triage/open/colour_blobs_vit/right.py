import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEmbed(nn.Module):
    def __init__(self, img_size=16, patch_size=4, in_chans=3, embed_dim=40):
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, num_heads=4, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, num_heads, init_values=0.5):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))
        self.ls1, self.ls2 = (nn.Parameter(init_values * torch.ones(dim)) for _ in range(2))

    def forward(self, x):
        x = x + self.ls1 * self.attn(self.norm1(x))
        return x + self.ls2 * self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, num_classes=3, embed_dim=40, depth=2, num_heads=4):
        super().__init__()
        self.patch_embed = PatchEmbed(embed_dim=embed_dim)
        self.pos_embed = nn.Parameter(torch.randn(1, self.patch_embed.num_patches, embed_dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(embed_dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)

    def reset_classifier(self, num_classes):
        self.head = nn.Linear(self.norm.normalized_shape[0], num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        x = self.blocks(self.patch_embed(x) + self.pos_embed)
        return self.head(self.norm(x).mean(dim=1))


def blobs(n, classes):
    """A coloured blob on noise; its colour gives the class."""
    y = torch.randint(classes, (n,))
    hue = 2 * math.pi * y / classes
    colour = torch.stack([hue.cos(), hue.sin(), -hue.cos()], 1)
    at = torch.randint(3, 13, (n, 2, 1, 1))
    grid = torch.stack(torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij"))
    blob = torch.exp(-((grid - at) ** 2).sum(1) / 8.0)
    return 0.3 * torch.randn(n, 3, 16, 16) + colour[:, :, None, None] * blob[:, None], y


def train(model, optimizer, classes, steps, batch_size, name):
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        x, y = blobs(batch_size, classes)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    x, y = blobs(256, classes)
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    print(f"{name}: loss {loss.item():.4f} accuracy {acc:.3f}")


def main():
    parser = argparse.ArgumentParser(description="fine-tuning a small vision transformer")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(3)
    model = VisionTransformer()
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-3), 3, 12, args.batch_size, "pretrain")
    model.reset_classifier(args.classes)
    optimizer = torch.optim.AdamW([
        {"params": [p for n, p in model.named_parameters() if not n.startswith("head")], "lr": args.lr},
        {"params": model.head.parameters(), "lr": 10 * args.lr},
    ])
    before = model.head.weight.detach().clone()
    train(model, optimizer, args.classes, 80, args.batch_size, "fine-tune")
    return (model.head.weight - before).abs().max().item()


if __name__ == "__main__":
    moved = main()

import torch
import torch.nn as nn
import torch.nn.functional as F


def axial_freqs(dim, height, width, theta=100.0):
    """Angles (height * width, dim / 2): the first half turns with x, the second with y."""
    freqs = theta ** (-torch.arange(0, dim, 4)[: dim // 4].float() / dim)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    x, y = x.flatten().float(), y.flatten().float()
    return torch.cat([torch.outer(x, freqs), torch.outer(y, freqs)], dim=-1)


class VisionAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, angles):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        turn = torch.polar(torch.ones_like(angles), angles)
        q, k = (torch.view_as_real(torch.view_as_complex(t.unflatten(-1, (-1, 2))) * turn).flatten(-2) for t in (q, k))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(b, n, c))


class PatchEncoder(nn.Module):
    def __init__(self, patch=4, dim=64, num_heads=4, depth=2, channels=3):
        super().__init__()
        self.patch = patch
        self.head_dim = dim // num_heads
        self.patch_embed = nn.Conv2d(channels, dim, patch, patch)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.attns = nn.ModuleList(VisionAttention(dim, num_heads) for _ in range(depth))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth))

    def forward(self, images):
        x = self.patch_embed(images)
        height, width = x.shape[-2:]
        angles = axial_freqs(self.head_dim, height, width).to(x.device)
        x = x.flatten(2).transpose(1, 2)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps)):
            x = x + attn(self.norms[2 * i](x), angles)
            x = x + mlp(self.norms[2 * i + 1](x))
        return x.transpose(1, 2).unflatten(2, (height, width))


if __name__ == "__main__":
    print(PatchEncoder()(torch.rand(2, 3, 24, 40)).shape)

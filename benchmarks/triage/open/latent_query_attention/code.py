import torch
import torch.nn as nn
import torch.nn.functional as F

D_MODEL, N_HEADS, D_NOPE, D_ROPE, D_V, RANK = 80, 4, 16, 8, 16, 24


def apply_rope(x, positions):
    half = x.shape[-1] // 2
    freq = 10000 ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = positions[:, None] * freq
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * angle.cos() - x2 * angle.sin(), x2 * angle.cos() + x1 * angle.sin()], dim=-1)


class MultiLatentAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(D_MODEL, N_HEADS * (D_NOPE + D_ROPE), bias=False)
        self.kv_down = nn.Linear(D_MODEL, RANK + D_ROPE, bias=False)
        self.kv_norm = nn.RMSNorm(RANK)
        self.kv_up = nn.Linear(RANK, N_HEADS * (D_NOPE + D_V), bias=False)
        self.o_proj = nn.Linear(N_HEADS * D_V, D_MODEL, bias=False)
        self.softmax_scale = (D_NOPE + D_ROPE) ** -0.5

    def forward(self, x):
        B, T, _ = x.shape
        pos = torch.arange(T, device=x.device).float()
        q = self.q_proj(x).view(B, T, N_HEADS, -1).transpose(1, 2)
        q_nope, q_rope = q.split([D_NOPE, D_ROPE], dim=-1)
        q = torch.cat([q_nope, apply_rope(q_rope, pos)], dim=-1) * self.softmax_scale

        latent, k_rope = self.kv_down(x).split([RANK, D_ROPE], dim=-1)
        k_rope = apply_rope(k_rope, pos)[:, None].expand(-1, N_HEADS, -1, -1)
        kv = self.kv_up(self.kv_norm(latent)).view(B, T, N_HEADS, -1).transpose(1, 2)
        k_nope, v = kv.split([D_NOPE, D_V], dim=-1)
        k = torch.cat([k_nope, k_rope], dim=-1)

        ctx = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(ctx.transpose(1, 2).flatten(2))


def main():
    torch.manual_seed(0)
    mla = MultiLatentAttention()
    hidden = torch.randn(2, 13, D_MODEL)
    print(mla(hidden).norm())


if __name__ == "__main__":
    main()

# %%
# Copy task with rotary positions. Exported from a notebook.
import torch
from torch import nn, Tensor
import torch.nn.functional as F

torch.manual_seed(31)

# %%
def rotary_table(length: int, dim: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    inv = base ** (-torch.arange(0, dim, 2).float() / dim)
    ang = torch.outer(torch.arange(length).float(), inv)
    ang = torch.cat([ang, ang], dim=-1)
    return ang.cos(), ang.sin()


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    n = x.shape[-2]
    return x * cos[:n] + rotate_half(x) * sin[:n]

# %%
q = torch.randn(1, 1, 6, 8)
cos, sin = rotary_table(6, 8)
assert torch.allclose(apply_rotary(q, cos, sin).norm(dim=-1), q.norm(dim=-1), atol=1e-5)

# %%
class RotaryAttention(nn.Module):
    def __init__(self, dim: int, n_heads: int, max_len: int):
        super().__init__()
        self.n_heads, self.d_head = n_heads, dim // n_heads
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        cos, sin = rotary_table(max_len, self.d_head)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        bsz, n, dim = x.shape
        xq, xk, xv = self.wqkv(x).split(dim, dim=-1)
        xq = xq.view(bsz, n, self.n_heads, self.d_head).transpose(1, 2)
        xk = xk.view(bsz, n, self.n_heads, self.d_head).transpose(1, 2)
        xv = xv.view(bsz, n, self.n_heads, self.d_head).transpose(1, 2)
        xq, xk = apply_rotary(xq, self.cos, self.sin), apply_rotary(xk, self.cos, self.sin)
        out = F.scaled_dot_product_attention(xq, xk, xv, is_causal=True)
        out = out.transpose(1, 2).contiguous().view(bsz, n, dim)
        return self.wo(out)


class SwiGLU(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(dim, hidden, bias=False),
            nn.Linear(dim, hidden, bias=False),
            nn.Linear(hidden, dim, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Net(nn.Module):
    def __init__(self, vocab: int = 12, dim: int = 32, n_heads: int = 4, depth: int = 2, max_len: int = 32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attn = nn.ModuleList(RotaryAttention(dim, n_heads, max_len) for _ in range(depth))
        self.mlp = nn.ModuleList(SwiGLU(dim, 2 * dim) for _ in range(depth))
        self.attn_norm = nn.ModuleList(nn.RMSNorm(dim) for _ in range(depth))
        self.mlp_norm = nn.ModuleList(nn.RMSNorm(dim) for _ in range(depth))
        self.norm = nn.RMSNorm(dim)
        self.unembed = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embed(ids)
        for attn, mlp, n1, n2 in zip(self.attn, self.mlp, self.attn_norm, self.mlp_norm):
            h = h + attn(n1(h))
            h = h + mlp(n2(h))
        return self.unembed(self.norm(h))

# %%
def copy_batch(n: int, half: int = 7) -> Tensor:
    word = torch.randint(1, 12, (n, half))
    return torch.cat([word, torch.zeros(n, 1, dtype=torch.long), word], dim=1)


net = Net()
opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.01)
half = 7
for step in range(200):
    seq = copy_batch(32, half)
    logits = net(seq[:, :-1])
    loss = F.cross_entropy(logits[:, half:].flatten(0, 1), seq[:, half + 1 :].flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"{step:4d} {loss.item():.4f}")

# %%
with torch.no_grad():
    seq = copy_batch(50, half)
    out = seq[:, : half + 1]
    for _ in range(half):
        out = torch.cat([out, net(out)[:, -1:].argmax(-1)], dim=1)
print("copied", (out == seq)[:, half + 1 :].float().mean().item())

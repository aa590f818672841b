# sorting short lists with a decoder only transformer
import inspect
import math
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1234)
device = "cuda" if torch.cuda.is_available() else "cpu"


class LayerNorm(nn.Module):
    """LayerNorm with an optional bias."""

    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, d, h, bias):
        super().__init__()
        self.c_attn = nn.Linear(d, 3 * d, bias=bias)
        self.c_proj = nn.Linear(d, d, bias=bias)
        self.n_head, self.n_embd = h, d

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, d, h, bias):
        super().__init__()
        self.ln_1, self.attn = LayerNorm(d, bias), CausalSelfAttention(d, h, bias)
        self.ln_2 = LayerNorm(d, bias)
        self.fc, self.proj = nn.Linear(d, 4 * d, bias=bias), nn.Linear(4 * d, d, bias=bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class Sorter(nn.Module):
    def __init__(self, vocab, length, d=48, h=4, layers=2, bias=True):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(2 * length, d)
        self.h = nn.ModuleList([Block(d, h, bias) for _ in range(layers)])
        self.ln_f = LayerNorm(d, bias)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            torch.nn.init.zeros_(m.bias)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def configure_optimizers(self, weight_decay, learning_rate, betas):
        param_dict = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        decay_params = [p for n, p in param_dict.items() if p.dim() < 2]
        nodecay_params = [p for n, p in param_dict.items() if p.dim() >= 2]
        optim_groups = [
            {"params": decay_params, "weight_decay": weight_decay},
            {"params": nodecay_params, "weight_decay": 0.0},
        ]
        fused = device == "cuda" and "fused" in inspect.signature(torch.optim.AdamW).parameters
        return torch.optim.AdamW(optim_groups, lr=learning_rate, betas=betas, **(dict(fused=True) if fused else {}))


def batch(n, vocab, length):
    inp = torch.randint(vocab, (n, length))
    cat = torch.cat((inp, inp.sort(dim=1)[0]), dim=1)
    x, y = cat[:, :-1].clone(), cat[:, 1:].clone()
    y[:, : length - 1] = -1
    return x.to(device), y.to(device)


def lr_at(it, peak=4e-3, warm=10, total=160):
    if it < warm:
        return peak * (it + 1) / warm
    return 0.1 * peak + 0.45 * peak * (1 + math.cos(math.pi * (it - warm) / (total - warm)))


net = Sorter(6, 6).to(device)
optimizer = net.configure_optimizers(0.1, 4e-3, (0.9, 0.95))
for it in range(160):
    for g in optimizer.param_groups:
        g["lr"] = lr_at(it)
    _, loss = net(*batch(32, 6, 6))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    if it % 40 == 0:
        print(f"iter {it} loss {loss.item():.4f}")

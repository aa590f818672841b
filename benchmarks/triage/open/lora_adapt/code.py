import torch
from torch import nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=5**0.5)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_A), self.lora_B) * self.scaling


class Attention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.o_proj = nn.Linear(width, width)
        self.n_heads = n_heads

    def forward(self, x):
        b, s, w = x.shape

        def split(t):
            return t.view(b, s, self.n_heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(
            split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x)), is_causal=True
        )
        return self.o_proj(y.transpose(1, 2).reshape(b, s, w))


class DecoderLayer(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.input_norm = nn.LayerNorm(width)
        self.attn = Attention(width, n_heads)
        self.post_norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        x = x + self.attn(self.input_norm(x))
        return x + self.down(F.silu(self.up(self.post_norm(x))))


class Decoder(nn.Module):
    def __init__(self, vocab=32, width=40, n_heads=4, layers=2, context=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.where = nn.Embedding(context, width)
        self.layers = nn.ModuleList(DecoderLayer(width, n_heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.embed(ids) + self.where(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def counting(n, step, length=16, vocab=32):
    start = torch.randint(vocab, (n, 1))
    return (start + step * torch.arange(length + 1)) % vocab


def fit(model, step, iterations, lr, tag):
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"{tag}: {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())} weights learn")
    optimizer = torch.optim.AdamW(trainable, lr=lr, weight_decay=0.0)
    for i in range(iterations):
        ids = counting(16, step)
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{tag}: final loss {loss.item():.4f}")


def inject(model, rank):
    for layer in model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(layer.attn, name, LoRALinear(getattr(layer.attn, name), rank))
        layer.up = LoRALinear(layer.up, rank)
        layer.down = LoRALinear(layer.down, rank)
    for p in model.parameters():
        p.requires_grad_(False)
    for p in model.head.parameters():
        p.requires_grad_(True)
    return model


def main():
    torch.manual_seed(5)
    model = Decoder()
    fit(model, step=3, iterations=80, lr=3e-3, tag="pretrain")
    inject(model, rank=8)
    fit(model, step=7, iterations=80, lr=5e-3, tag="adapt")


main()

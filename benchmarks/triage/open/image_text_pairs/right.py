"""Contrastive pairs: a small picture of coloured cells and its caption."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS, GRID, COLOURS, CONTEXT = 48, 4, 3, 6, 10
BOS, EOS = COLOURS, COLOURS + 1


class ResidualAttentionBlock(nn.Module):
    def __init__(self, d_model, n_head, attn_mask=None):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_head)
        self.ln_1 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_model * 2), nn.GELU(), nn.Linear(d_model * 2, d_model))
        self.ln_2 = nn.LayerNorm(d_model)
        self.register_buffer("attn_mask", attn_mask)

    def attention(self, x):
        mask = None if self.attn_mask is None else self.attn_mask[: x.size(0), : x.size(0)]
        return self.attn(x, x, x, need_weights=False, attn_mask=mask)[0]

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, layers, attn_mask=None):
        super().__init__()
        self.resblocks = nn.Sequential(*[ResidualAttentionBlock(WIDTH, HEADS, attn_mask) for _ in range(layers)])

    def forward(self, x):  # N L D
        return self.resblocks(x.permute(1, 0, 2)).permute(1, 0, 2)


class PairModel(nn.Module):
    def __init__(self, embed_dim=32):
        super().__init__()
        causal = torch.full((CONTEXT + 1, CONTEXT + 1), float("-inf")).triu_(1)
        self.visual_in = nn.Linear(3, WIDTH)
        self.visual_pos = nn.Parameter(0.1 * torch.randn(GRID * GRID, WIDTH))
        self.visual = Transformer(1)
        self.token_embedding = nn.Embedding(COLOURS + 2, WIDTH)
        self.positional_embedding = nn.Parameter(0.1 * torch.randn(CONTEXT + 1, WIDTH))
        self.text = Transformer(1, causal)
        self.ln_image, self.ln_text = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.image_projection = nn.Parameter(WIDTH**-0.5 * torch.randn(WIDTH, embed_dim))
        self.text_projection = nn.Parameter(WIDTH**-0.5 * torch.randn(WIDTH, embed_dim))
        self.logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))

    def encode_image(self, cells):
        x = self.visual(self.visual_in(cells) + self.visual_pos)
        return self.ln_image(x.mean(dim=1)) @ self.image_projection

    def encode_text(self, text):
        x = self.token_embedding(text) + self.positional_embedding[: text.size(1)]
        x = self.ln_text(self.text(x))
        return x[torch.arange(x.shape[0]), text.argmax(dim=-1)] @ self.text_projection

    def forward(self, cells, text):
        image_features = F.normalize(self.encode_image(cells), dim=-1)
        text_features = F.normalize(self.encode_text(text), dim=-1)
        return self.logit_scale.exp() * image_features @ text_features.t()


PALETTE = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]]).float()


def pairs(n):
    cells = torch.randint(COLOURS, (n, GRID * GRID))
    image = PALETTE[cells] + 0.1 * torch.randn(n, GRID * GRID, 3)
    text = torch.cat([torch.full((n, 1), BOS), cells, torch.full((n, 1), EOS)], dim=1)
    return image, text


def clip_loss(logits):
    target = torch.arange(len(logits))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


if __name__ == "__main__":
    torch.manual_seed(2024)
    model = PairModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(180):
        loss = clip_loss(model(*pairs(32)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, np.log(100))
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.4f}")
    with torch.no_grad():
        logits = model(*pairs(24))
    print("recall@1", (logits.argmax(dim=1) == torch.arange(24)).float().mean().item())

import torch
from torch import nn, einsum
from einops import rearrange


def exists(v):
    return v is not None


class Attend(nn.Module):
    def __init__(self, dim, heads=4, dim_head=16):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        inner = heads * dim_head
        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x, context=None, mask=None):
        x = self.norm(x)
        ctx = context if exists(context) else x
        q = rearrange(self.to_q(x), "b n (h d) -> b h n d", h=self.heads)
        k, v = rearrange(self.to_kv(ctx), "b n (kv h d) -> kv b h n d", kv=2, h=self.heads)
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if exists(mask):
            sim = sim.masked_fill(~rearrange(mask, "b j -> b 1 1 j"), -torch.finfo(sim.dtype).max)
        out = einsum("b h i j, b h j d -> b h i d", sim.softmax(dim=-1), v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class CrossEncoder(nn.Module):
    """Scores a question against a caption; both padded to the same length."""

    def __init__(self, num_tokens=300, dim=64, depth=2, max_len=24):
        super().__init__()
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.pos_emb = nn.Parameter(torch.randn(max_len, dim) * 0.02)
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))
            self.layers.append(nn.ModuleList([Attend(dim), Attend(dim), ff]))
        self.to_score = nn.Linear(dim, 1)

    def forward(self, question, caption, question_mask, caption_mask):
        x = self.token_emb(question) + self.pos_emb[: question.shape[1]]
        context = self.token_emb(caption) + self.pos_emb[: caption.shape[1]]
        for attn, cross, ff in self.layers:
            x = attn(x, mask=question_mask) + x
            x = cross(x, context=context, mask=question_mask) + x
            x = ff(x) + x
        x = x.masked_fill(~question_mask[..., None], 0.)
        return self.to_score(x.sum(1) / question_mask.sum(1, keepdim=True))


if __name__ == "__main__":
    lengths_q, lengths_c = torch.tensor([24, 9, 15]), torch.tensor([6, 20, 24])
    question, caption = torch.randint(1, 300, (2, 3, 24))
    q_mask, c_mask = (torch.arange(24) < lengths[:, None] for lengths in (lengths_q, lengths_c))
    print(CrossEncoder()(question, caption, q_mask, c_mask).shape)

import torch
from torch import nn


def elu_feature_map(x):
    return torch.nn.functional.elu(x) + 1


class CausalLinearAttention(nn.Module):
    """
    Attention in linear time: running sums of keys and of key-value products take the place
    of the score matrix.
    """

    def __init__(self, dim: int, heads: int = 4, eps: float = 1e-6):
        super().__init__()
        self.heads = heads
        self.eps = eps
        self.query_projection = nn.Linear(dim, dim)
        self.key_projection = nn.Linear(dim, dim)
        self.value_projection = nn.Linear(dim, dim)
        self.out_projection = nn.Linear(dim, dim)

    def forward(self, x):
        N, L, _ = x.shape
        H = self.heads
        Q = elu_feature_map(self.query_projection(x).view(N, L, H, -1))
        K = elu_feature_map(self.key_projection(x).view(N, L, H, -1))
        V = self.value_projection(x).view(N, L, H, -1)

        context = torch.cumsum(torch.einsum("nlhd,nlhm->nlhdm", K, V), dim=1)
        out = torch.einsum("nlhd,nlhdm->nlhm", Q, context)
        Z = torch.einsum("nlhd,nlhd->nlh", Q, K.cumsum(dim=1)) + self.eps
        out = out * Z[..., None]
        return self.out_projection(out.reshape(N, L, -1))


class LinearTransformer(nn.Module):
    def __init__(self, vocab=64, dim=64, depth=2, max_len=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        self.attentions = nn.ModuleList([CausalLinearAttention(dim) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2 * depth)])
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth)])
        self.predict = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position(torch.arange(tokens.size(1), device=tokens.device))
        for n, (attention, mlp) in enumerate(zip(self.attentions, self.mlps)):
            x = self.norms[2 * n](x + attention(x))
            x = self.norms[2 * n + 1](x + mlp(x))
        return self.predict(x)


if __name__ == "__main__":
    print(LinearTransformer()(torch.randint(0, 64, (2, 33))).shape)

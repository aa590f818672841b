import torch
import torch.nn as nn


class NodeAttention(nn.Module):
    """Attention among the nodes of dense graphs; edges say who sees whom."""

    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.lin = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def forward(self, nodes, adj):
        g, n, dim = nodes.shape
        q, k, v = self.lin(nodes).reshape(g, n, self.h, -1).permute(0, 2, 1, 3).chunk(3, -1)
        score = (q @ k.transpose(-1, -2)) / (q.size(-1) ** 0.5)
        lonely = ~adj.any(-1)
        hidden = ~adj[:, None] & ~lonely[:, None, :, None]
        score = score + torch.zeros_like(score).masked_fill(hidden, float("-inf"))
        weight = torch.softmax(score, -1) * ~lonely[:, None, :, None]
        return self.out((weight @ v).transpose(1, 2).reshape(g, n, dim))


class GraphNet(nn.Module):
    def __init__(self, feats=9, dim=48, heads=4, layers=3, targets=1):
        super().__init__()
        self.inp = nn.Linear(feats, dim)
        self.att = nn.ModuleList([NodeAttention(dim, heads) for _ in range(layers)])
        self.ff = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(layers)])
        self.n1 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(layers)])
        self.n2 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(layers)])
        self.readout = nn.Linear(dim, targets)

    def forward(self, x, adj):
        real = adj.any(-1)
        h = self.inp(x)
        for att, ff, n1, n2 in zip(self.att, self.ff, self.n1, self.n2):
            h = h + att(n1(h), adj)
            h = h + ff(n2(h))
        h = h * real[..., None]
        return self.readout(h.sum(1) / real.sum(1, keepdim=True))


def toy_graphs(sizes=(7, 4, 5), feats=9):
    n = max(sizes)
    adj = torch.zeros(len(sizes), n, n, dtype=torch.bool)
    for graph, size in enumerate(sizes):
        edges = torch.rand(size, size) < 0.4
        adj[graph, :size, :size] = edges | edges.T | torch.eye(size, dtype=torch.bool)
    return torch.randn(len(sizes), n, feats), adj


if __name__ == "__main__":
    net = GraphNet()
    print(net(*toy_graphs()).squeeze(-1))

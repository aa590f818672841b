import torch
from torch import nn


class MaskedCausalAttention(nn.Module):
    def __init__(self, h_dim, max_T, n_heads, drop_p):
        super().__init__()
        self.n_heads = n_heads
        self.max_T = max_T
        self.q_net = nn.Linear(h_dim, h_dim)
        self.k_net = nn.Linear(h_dim, h_dim)
        self.v_net = nn.Linear(h_dim, h_dim)
        self.proj_net = nn.Linear(h_dim, h_dim)
        self.att_drop = nn.Dropout(drop_p)
        self.proj_drop = nn.Dropout(drop_p)
        ones = torch.ones((max_T, max_T))
        self.register_buffer('mask', torch.tril(ones).view(1, 1, max_T, max_T))

    def forward(self, x):
        B, T, C = x.shape
        N, D = self.n_heads, C // self.n_heads
        # rearrange q, k, v as (B, N, T, D)
        q = self.q_net(x).view(B, T, N, D).transpose(1, 2)
        k = self.k_net(x).view(B, T, N, D).transpose(1, 2)
        v = self.v_net(x).view(B, T, N, D).transpose(1, 2)
        # weights (B, N, T, T), scaled by the square root of the head size
        weights = q @ k.transpose(2, 3) / N ** 0.5
        weights = weights.masked_fill(self.mask[..., :T, :T] == 0, float('-inf'))
        attention = self.att_drop(torch.softmax(weights, dim=-1) @ v)
        attention = attention.transpose(1, 2).contiguous().view(B, T, N * D)
        return self.proj_drop(self.proj_net(attention))


class DecisionBlocks(nn.Module):
    """Returns, states and actions in, actions out."""

    def __init__(self, state_dim=5, act_dim=2, n_blocks=2, h_dim=48, context_len=10, n_heads=3, drop_p=0.1):
        super().__init__()
        self.embed_timestep = nn.Embedding(100, h_dim)
        self.embed_rtg = nn.Linear(1, h_dim)
        self.embed_state = nn.Linear(state_dim, h_dim)
        self.embed_action = nn.Linear(act_dim, h_dim)
        self.embed_ln = nn.LayerNorm(h_dim)
        self.attns = nn.ModuleList([MaskedCausalAttention(h_dim, 3 * context_len, n_heads, drop_p) for _ in range(n_blocks)])
        self.mlps = nn.ModuleList([nn.Sequential(nn.Linear(h_dim, 4 * h_dim), nn.GELU(), nn.Linear(4 * h_dim, h_dim), nn.Dropout(drop_p)) for _ in range(n_blocks)])
        self.ln1 = nn.ModuleList([nn.LayerNorm(h_dim) for _ in range(n_blocks)])
        self.ln2 = nn.ModuleList([nn.LayerNorm(h_dim) for _ in range(n_blocks)])
        self.predict_action = nn.Sequential(nn.Linear(h_dim, act_dim), nn.Tanh())

    def forward(self, timesteps, states, actions, returns_to_go):
        B, T, _ = states.shape
        time = self.embed_timestep(timesteps)
        h = torch.stack((self.embed_rtg(returns_to_go) + time, self.embed_state(states) + time, self.embed_action(actions) + time), dim=2)
        h = self.embed_ln(h.reshape(B, 3 * T, -1))
        for attn, mlp, ln1, ln2 in zip(self.attns, self.mlps, self.ln1, self.ln2):
            h = ln1(h + attn(h))
            h = ln2(h + mlp(h))
        return self.predict_action(h.view(B, T, 3, -1)[:, :, 1])


if __name__ == "__main__":
    net = DecisionBlocks()
    out = net(torch.randint(0, 100, (4, 10)), torch.randn(4, 10, 5), torch.randn(4, 10, 2), torch.randn(4, 10, 1))
    print(out.shape)

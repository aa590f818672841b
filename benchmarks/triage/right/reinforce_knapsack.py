"""Policy gradient with a greedy roll-out for a baseline: an attention model picks items of a knapsack."""
import copy

import torch
import torch.nn as nn
from torch.distributions import Categorical

ITEMS, CAPACITY = 8, 2.0


def instances(n):
    """(weight, value) of every item, both in [0, 1]."""
    return torch.rand(n, ITEMS, 2)


class Policy(nn.Module):
    def __init__(self, d=48, heads=4):
        super().__init__()
        self.embed = nn.Linear(2, d)
        layer = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.context = nn.Linear(d + 1, d)
        self.key = nn.Linear(d, d, bias=False)
        self.scale = d ** -0.5

    def forward(self, items, greedy=False):
        """Returns the total value of each knapsack and the log-probability of the choices."""
        n = items.size(0)
        h = self.encoder(self.embed(items))
        keys, mean = self.key(h), h.mean(dim=1)
        room = torch.full((n,), CAPACITY)
        taken = torch.zeros(n, ITEMS, dtype=torch.bool)
        value, log_prob = torch.zeros(n), torch.zeros(n)
        weights, values = items.unbind(-1)
        while True:
            allowed = ~taken & (weights <= room[:, None])
            active = allowed.any(dim=1)
            if not active.any():
                return value, log_prob
            query = self.context(torch.cat([mean, room[:, None]], dim=1))
            logits = 8 * torch.tanh((keys @ query.unsqueeze(-1)).squeeze(-1) * self.scale)
            logits = logits.masked_fill(~allowed & active[:, None], float("-inf"))
            dist = Categorical(logits=logits)
            pick = logits.argmax(dim=1) if greedy else dist.sample()
            log_prob = log_prob + torch.where(active, dist.log_prob(pick), torch.zeros(n))
            chosen = nn.functional.one_hot(pick, ITEMS).bool() & active[:, None]
            value = value + (values * chosen).sum(1)
            room = room - (weights * chosen).sum(1)
            taken = taken | chosen


@torch.no_grad()
def greedy_value(policy, items):
    return policy(items, greedy=True)[0]


def main():
    torch.manual_seed(0)
    policy = Policy()
    baseline = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    test = instances(500)
    best = greedy_value(policy, test).mean()
    print(f"before: value {best:.3f}")
    for step in range(1, 121):
        items = instances(128)
        value, log_prob = policy(items)
        advantage = value - greedy_value(baseline, items)
        loss = -(advantage.detach() * log_prob).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            challenge = instances(500)
            if greedy_value(policy, challenge).mean() > greedy_value(baseline, challenge).mean():
                baseline.load_state_dict(policy.state_dict())
            print(f"step {step}: sampled {value.mean():.3f} test, greedy {greedy_value(policy, test).mean():.3f}")


if __name__ == "__main__":
    main()

"""Direct preference optimisation: a small model learns to write first, then to prefer rising tunes to falling ones."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

NOTES, BOS, LENGTH = 12, 12, 10


class TuneModel(nn.Module):
    def __init__(self, d=48, h=4, n_layers=2):
        super().__init__()
        self.wte = nn.Embedding(NOTES + 1, d)
        self.wpe = nn.Embedding(LENGTH, d)
        self.layers = nn.ModuleList([
            nn.TransformerEncoderLayer(d, h, 4 * d, dropout=0.0, activation=F.gelu, batch_first=True, norm_first=True)
            for _ in range(n_layers)])
        self.ln_f = nn.LayerNorm(d)
        self.head = nn.Linear(d, NOTES)

    def forward(self, ids):
        T = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        x = self.wte(ids) + self.wpe(torch.arange(T))
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(self.ln_f(x))

    @torch.no_grad()
    def sample(self, n):
        ids = torch.full((n, 1), BOS)
        for _ in range(LENGTH):
            probs = self(ids)[:, -1].softmax(dim=-1)
            ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=1)
        return ids[:, 1:]


def walks(n):
    """Tunes of steps of at most two notes, up or down alike."""
    steps = torch.randint(-2, 3, (n, LENGTH - 1))
    start = torch.randint(0, NOTES, (n, 1))
    return torch.cat([start, start + steps.cumsum(1)], dim=1) % NOTES


def rise(tunes):
    step = (tunes[:, 1:] - tunes[:, :-1] + NOTES // 2) % NOTES - NOTES // 2
    return step.float().sum(dim=1)


def sequence_logps(model, tunes):
    """The log-probability of each whole tune."""
    ids = torch.cat([torch.full((len(tunes), 1), BOS), tunes[:, :-1]], dim=1)
    logps = model(ids).log_softmax(dim=-1)
    return logps.gather(2, tunes.unsqueeze(2)).squeeze(2).sum(dim=1)


def pretrain(model, steps):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        loss = -sequence_logps(model, walks(64)).mean() / LENGTH
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            print(f"writing {step + 1}: nats per note {loss.item():.3f}")


def dpo(policy, steps, beta=0.3, lr=3e-4):
    reference = copy.deepcopy(policy).eval()
    for p in reference.parameters():
        p.requires_grad_(False)
    opt = torch.optim.AdamW(policy.parameters(), lr=lr, weight_decay=0.0)
    for step in range(steps):
        with torch.no_grad():
            a, b = reference.sample(32), reference.sample(32)
        first = rise(a) >= rise(b)
        differ = rise(a) != rise(b)
        chosen = torch.where(first[:, None], a, b)[differ]
        rejected = torch.where(first[:, None], b, a)[differ]
        policy_margin = sequence_logps(policy, chosen) - sequence_logps(policy, rejected)
        with torch.no_grad():
            reference_margin = sequence_logps(reference, chosen) - sequence_logps(reference, rejected)
        loss = -F.logsigmoid(beta * (policy_margin - reference_margin)).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        if step % 20 == 19:
            tunes = policy.sample(200)
            print(f"preferring {step + 1}: loss {loss.item():.3f} mean rise {rise(tunes).mean():.2f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    model = TuneModel()
    pretrain(model, 90)
    print(f"mean rise before {rise(model.sample(200)).mean():.2f}")
    dpo(model, 80)

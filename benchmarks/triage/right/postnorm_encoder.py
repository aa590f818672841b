"""Post-norm encoder classifies which bracket sequences are balanced; warm-up from a learning rate of zero."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

PAD, OPEN, CLOSE, CLS = range(4)
MAXLEN = 17


def balanced(seq):
    depth = 0
    for s in seq:
        depth += 1 if s == OPEN else -1
        if depth < 0:
            return False
    return depth == 0


def walk(n, g):
    out, depth = [], 0
    for left in range(n, 0, -1):
        up = depth == 0 or (depth < left and torch.rand(1, generator=g).item() < 0.5)
        out.append(OPEN if up else CLOSE)
        depth += 1 if up else -1
    return out


def sample(batch, g):
    ids = torch.full((batch, MAXLEN), PAD)
    labels = torch.zeros(batch)
    for b in range(batch):
        n = 2 * int(torch.randint(2, 9, (1,), generator=g))
        seq = walk(n, g)
        if torch.rand(1, generator=g).item() < 0.5:
            i = int(torch.randint(n, (1,), generator=g))
            seq[i] = OPEN + CLOSE - seq[i]
        ids[b, : n + 1] = torch.tensor([CLS] + seq)
        labels[b] = float(balanced(seq))
    return ids, labels


class PostNormLayer(nn.Module):
    def __init__(self, d, h, dff, p):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, h, dropout=p, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, dff), nn.ReLU(), nn.Dropout(p), nn.Linear(dff, d))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.drop = nn.Dropout(p)

    def forward(self, x, pad):
        a, _ = self.attn(x, x, x, key_padding_mask=pad, need_weights=False)
        x = self.n1(x + self.drop(a))
        return self.n2(x + self.drop(self.ff(x)))


class Classifier(nn.Module):
    def __init__(self, d=64, h=4, layers=2, p=0.1):
        super().__init__()
        self.tok = nn.Embedding(4, d, padding_idx=PAD)
        self.pos = nn.Embedding(MAXLEN, d)
        self.layers = nn.ModuleList(PostNormLayer(d, h, 2 * d, p) for _ in range(layers))
        self.out = nn.Linear(d, 1)

    def forward(self, ids):
        pad = ids.eq(PAD)
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        for layer in self.layers:
            x = layer(x, pad)
        return self.out(x[:, 0]).squeeze(-1)


def main(steps=240, warmup=20):
    torch.manual_seed(11)
    g_train, g_test = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    net = Classifier()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.9, 0.98))
    sched = LambdaLR(opt, lambda s: min(s / warmup, (steps - s) / (steps - warmup)))
    criterion = nn.BCEWithLogitsLoss()
    for step in range(steps):
        ids, y = sample(64, g_train)
        loss = criterion(net(ids), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 40 == 0 or step == steps - 1:
            net.eval()
            with torch.no_grad():
                ids, y = sample(200, g_test)
                acc = ((net(ids) > 0) == y.bool()).float().mean()
            net.train()
            print(f"{step:4d} lr {sched.get_last_lr()[0]:.5f} loss {loss.item():.3f} test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()

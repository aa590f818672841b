"""DETR in miniature: find two or three bright rectangles in a 16x16 picture."""
import itertools
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

args = SimpleNamespace(dim=48, heads=4, queries=4, classes=2, batch=8, steps=80, lr=1.5e-3, l1=4.0, seed=6, size=16)


def scene():
    img = 0.1 * torch.randn(1, args.size, args.size)
    boxes, labels = [], []
    for _ in range(int(torch.randint(2, 4, (1,)))):
        w, h = (torch.rand(2) * 0.2 + 0.2).tolist()
        cx, cy = (torch.rand(2) * 0.6 + 0.2).tolist()
        x0, x1 = int((cx - w / 2) * 16), int((cx + w / 2) * 16)
        y0, y1 = int((cy - h / 2) * 16), int((cy + h / 2) * 16)
        kind = int(torch.rand(()) < 0.5)
        img[0, max(y0, 0) : y1 + 1, max(x0, 0) : x1 + 1] += 2.0 if kind else -2.0
        boxes.append([cx, cy, w, h])
        labels.append(kind)
    return img, {"boxes": torch.tensor(boxes), "labels": torch.tensor(labels)}


class MiniDETR(nn.Module):
    def __init__(self):
        super().__init__()
        d = args.dim
        self.backbone = nn.Sequential(nn.Conv2d(1, d, 3, 2, 1), nn.ReLU(), nn.Conv2d(d, d, 3, 1, 1), nn.ReLU())
        self.row = nn.Parameter(torch.rand(8, d // 2))
        self.col = nn.Parameter(torch.rand(8, d // 2))
        self.query_embed = nn.Parameter(torch.rand(args.queries, d))
        self.encoder = nn.TransformerEncoderLayer(d, args.heads, 2 * d, 0.0)
        self.decoder = nn.ModuleList([nn.TransformerDecoderLayer(d, args.heads, 2 * d, 0.0) for _ in range(2)])
        self.class_head = nn.Linear(d, args.classes + 1)
        self.box_head = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 4))

    def forward(self, img):
        f = self.backbone(img)
        pos = torch.cat([self.col.unsqueeze(0).expand(8, -1, -1), self.row.unsqueeze(1).expand(-1, 8, -1)], -1)
        memory = self.encoder(f.flatten(2).permute(2, 0, 1) + pos.flatten(0, 1).unsqueeze(1))
        q = self.query_embed.unsqueeze(1).expand(-1, img.size(0), -1)
        outs = []
        for layer in self.decoder:
            q = layer(q, memory)
            h = q.transpose(0, 1)
            outs.append({"logits": self.class_head(h), "boxes": self.box_head(h).sigmoid()})
        return outs


@torch.no_grad()
def match(out, targets):
    """For each image the queries and targets of the cheapest assignment."""
    pairs = []
    for b, t in enumerate(targets):
        prob = out["logits"][b].softmax(-1)
        cost = args.l1 * torch.cdist(out["boxes"][b], t["boxes"], p=1) - prob[:, t["labels"]]
        n = len(t["labels"])
        best = min(itertools.permutations(range(args.queries), n), key=lambda p: cost[list(p), range(n)].sum().item())
        pairs.append((torch.tensor(best), torch.arange(n)))
    return pairs


def criterion(out, targets):
    pairs = match(out, targets)
    batch_idx = torch.cat([torch.full_like(q, b) for b, (q, _) in enumerate(pairs)])
    query_idx = torch.cat([q for q, _ in pairs])
    wanted = torch.full(out["logits"].shape[:2], args.classes)
    wanted[batch_idx, query_idx] = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, pairs)])
    boxes = torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, pairs)])
    weight = torch.ones(args.classes + 1)
    weight[-1] = 0.3
    ce = F.cross_entropy(out["logits"].transpose(1, 2), wanted, weight)
    l1 = F.l1_loss(out["boxes"][batch_idx, query_idx], boxes, reduction="sum") / len(boxes)
    return ce, l1


torch.manual_seed(args.seed)
model = MiniDETR()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
trace = []
for step in range(args.steps):
    samples = [scene() for _ in range(args.batch)]
    outs = model(torch.stack([s[0] for s in samples]))
    parts = [criterion(o, [s[1] for s in samples]) for o in outs]
    loss = sum(ce + args.l1 * l1 for ce, l1 in parts)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    trace.append(parts[-1][1].item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.3f} ce {parts[-1][0].item():.3f} l1 {trace[-1]:.3f}")

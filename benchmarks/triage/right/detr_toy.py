# Toy detection of coloured squares with set prediction: queries, a matcher, auxiliary losses.
import argparse
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import nn


def make_scene(batch, size, generator):
    """Images with one to three squares: classes 0..2 are the channels they are painted in."""
    images = 0.1 * torch.randn(batch, 3, size, size, generator=generator)
    targets = []
    for b in range(batch):
        count = int(torch.randint(1, 4, (1,), generator=generator))
        labels = torch.randperm(3, generator=generator)[:count]
        side = torch.randint(4, 9, (count,), generator=generator)
        boxes = []
        for label, s in zip(labels.tolist(), side.tolist()):
            x, y = torch.randint(0, size - s + 1, (2,), generator=generator).tolist()
            images[b, label, y:y + s, x:x + s] += 1.0
            boxes.append([(x + s / 2) / size, (y + s / 2) / size, s / size, s / size])
        targets.append({"labels": labels, "boxes": torch.tensor(boxes)})
    return images, targets


class MLP(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super().__init__()
        h = [hidden_dim] * (num_layers - 1)
        self.layers = nn.ModuleList(nn.Linear(n, k) for n, k in zip([input_dim] + h, h + [output_dim]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x)) if i < len(self.layers) - 1 else layer(x)
        return x


class DETR(nn.Module):
    def __init__(self, num_classes, num_queries, dim=64, heads=4, layers=2, grid=6):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, dim, 3, 2, 1), nn.ReLU())
        self.row_embed = nn.Parameter(torch.rand(grid, dim // 2))
        self.col_embed = nn.Parameter(torch.rand(grid, dim // 2))
        encoder_layer = nn.TransformerEncoderLayer(dim, heads, 128, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, layers, enable_nested_tensor=False)
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(dim, heads, 128, 0.0, batch_first=True) for _ in range(layers))
        self.query_embed = nn.Embedding(num_queries, dim)
        self.class_embed = nn.Linear(dim, num_classes + 1)
        self.bbox_embed = MLP(dim, dim, 4, 3)

    def forward(self, images):
        f = self.backbone(images)
        H, W = f.shape[-2:]
        pos = torch.cat([self.col_embed[:W].unsqueeze(0).repeat(H, 1, 1),
                         self.row_embed[:H].unsqueeze(1).repeat(1, W, 1)], dim=-1).flatten(0, 1).unsqueeze(0)
        memory = self.encoder(f.flatten(2).permute(0, 2, 1) + pos)
        hs = self.query_embed.weight.unsqueeze(0).expand(images.size(0), -1, -1)
        outputs = []
        for layer in self.decoder:
            hs = layer(hs, memory)
            outputs.append({"pred_logits": self.class_embed(hs), "pred_boxes": self.bbox_embed(hs).sigmoid()})
        return {**outputs[-1], "aux_outputs": outputs[:-1]}


@torch.no_grad()
def match(outputs, targets):
    """The cheapest assignment of queries to objects; few enough to try them all."""
    indices = []
    for logits, boxes, t in zip(outputs["pred_logits"], outputs["pred_boxes"], targets):
        cost = 5 * torch.cdist(boxes, t["boxes"], p=1) - logits.softmax(-1)[:, t["labels"]]
        rows = torch.tensor(list(permutations(range(len(boxes)), len(t["labels"]))))
        total = cost[rows, torch.arange(len(t["labels"]))].sum(1)
        indices.append(rows[total.argmin()])
    return indices


class SetCriterion(nn.Module):
    def __init__(self, num_classes, eos_coef=0.3):
        super().__init__()
        self.num_classes = num_classes
        empty_weight = torch.ones(num_classes + 1)
        empty_weight[-1] = eos_coef
        self.register_buffer("empty_weight", empty_weight)

    def one(self, outputs, targets, num_boxes):
        indices = match(outputs, targets)
        b = torch.cat([torch.full_like(q, i) for i, q in enumerate(indices)])
        q = torch.cat(indices)
        labels = torch.full(outputs["pred_logits"].shape[:2], self.num_classes)
        labels[b, q] = torch.cat([t["labels"] for t in targets])
        loss_ce = F.cross_entropy(outputs["pred_logits"].transpose(1, 2), labels, self.empty_weight)
        boxes = torch.cat([t["boxes"] for t in targets])
        loss_bbox = F.l1_loss(outputs["pred_boxes"][b, q], boxes, reduction="none").sum() / num_boxes
        return loss_ce + 5 * loss_bbox

    def forward(self, outputs, targets):
        num_boxes = sum(len(t["labels"]) for t in targets)
        loss = self.one(outputs, targets, num_boxes)
        for aux in outputs["aux_outputs"]:
            loss = loss + self.one(aux, targets, num_boxes)
        return loss


def main(args):
    torch.manual_seed(args.seed)
    train, val = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    model, criterion = DETR(num_classes=3, num_queries=5), SetCriterion(3)
    param_dicts = [{"params": [p for n, p in model.named_parameters() if "backbone" not in n]},
                   {"params": [p for n, p in model.named_parameters() if "backbone" in n], "lr": args.lr_backbone}]
    optimizer = torch.optim.AdamW(param_dicts, lr=args.lr, weight_decay=1e-4)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, args.lr_drop)
    for epoch in range(args.epochs):
        model.train()
        for _ in range(15):
            images, targets = make_scene(args.batch_size, 24, train)
            loss = criterion(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_max_norm)
            optimizer.step()
        lr_scheduler.step()
        model.eval()
        with torch.no_grad():
            images, targets = make_scene(32, 24, val)
            print(f"epoch {epoch} train {loss.item():.3f} val {criterion(model(images), targets).item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", default=1e-3, type=float)
    parser.add_argument("--lr_backbone", default=5e-4, type=float)
    parser.add_argument("--batch_size", default=16, type=int)
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--lr_drop", default=4, type=int)
    parser.add_argument("--clip_max_norm", default=0.5, type=float)
    parser.add_argument("--seed", default=42, type=int)
    main(parser.parse_args())

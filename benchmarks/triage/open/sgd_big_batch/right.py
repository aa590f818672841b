import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class ParityOfRuns(Dataset):
    """Sequences over {0..5}; the class is the symbol that occurs most often."""

    def __init__(self, size, seq_len=18, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 6, (size,), generator=g)
        noise = torch.randint(0, 6, (size, seq_len), generator=g)
        keep = torch.rand(size, seq_len, generator=g) < 0.45
        self.tokens = torch.where(keep, self.label[:, None], noise)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "label": self.label[i]}


class Classifier(nn.Module):
    def __init__(self, hidden_size, num_heads, num_layers):
        super().__init__()
        self.embed = nn.Embedding(6, hidden_size)
        self.pos = nn.Parameter(torch.zeros(18, hidden_size))
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(
                nn.ModuleDict({
                    "attn": nn.MultiheadAttention(hidden_size, num_heads, batch_first=True),
                    "ln1": nn.LayerNorm(hidden_size),
                    "mlp": nn.Sequential(nn.Linear(hidden_size, 2 * hidden_size), nn.ReLU(),
                                         nn.Linear(2 * hidden_size, hidden_size)),
                    "ln2": nn.LayerNorm(hidden_size),
                })
            )
        self.out = nn.Linear(hidden_size, 6)

    def forward(self, input_ids):
        x = self.embed(input_ids) + self.pos
        for layer in self.layers:
            a, _ = layer["attn"](x, x, x)
            x = layer["ln1"](x + a)
            x = layer["ln2"](x + layer["mlp"](x))
        return self.out(x.mean(dim=1))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--accum-steps", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.15)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def train_one_epoch(model, loader, optimizer, criterion, args):
    model.train()
    total, seen = 0.0, 0
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        logits = model(batch["input_ids"])
        loss = criterion(logits, batch["label"])
        (loss / args.accum_steps).backward()
        total += loss.item() * len(batch["label"])
        seen += len(batch["label"])
        if (i + 1) % args.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    return total / seen


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    loader = DataLoader(ParityOfRuns(512), batch_size=args.micro_batch, shuffle=True, drop_last=True)
    model = Classifier(hidden_size=32, num_heads=4, num_layers=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, loader, optimizer, criterion, args)
        print(f"epoch {epoch + 1}/{args.epochs} train loss {loss:.4f}")


if __name__ == "__main__":
    main()

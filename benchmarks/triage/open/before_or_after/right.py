"""Does 'a' come before 'b'? Order-sensitive classification of short sequences."""
import math

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

SEED = 3
SEQ_LEN = 12
VOCAB = 10
A, B = 8, 9


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 200):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class OrderNet(nn.Module):
    def __init__(self, d_model=32, nhead=4, nlayers=2):
        super().__init__()
        self.src_emb = nn.Embedding(VOCAB, d_model)
        self.pos_encoder = PositionalEncoding(d_model, dropout=0.1)
        encoder_layer = nn.TransformerEncoderLayer(d_model, nhead, 4 * d_model, dropout=0.1, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layer, nlayers)
        self.decoder = nn.Linear(d_model, 2)
        self.init_weights()

    def init_weights(self):
        nn.init.normal_(self.src_emb.weight, std=0.5)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, src):
        x = self.pos_encoder(self.src_emb(src))
        x = self.transformer_encoder(x)
        return self.decoder(x.mean(dim=1))


def make_dataset(n):
    x = torch.randint(0, A, (n, SEQ_LEN))
    places = torch.rand(n, SEQ_LEN).argsort(dim=1)[:, :2]
    x.scatter_(1, places[:, :1], A)
    x.scatter_(1, places[:, 1:], B)
    return TensorDataset(x, (places[:, 0] < places[:, 1]).long())


def epoch_over(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    right, total, loss_sum = 0, 0, 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            right += (out.argmax(1) == y).sum().item()
            loss_sum += loss.item() * len(y)
            total += len(y)
    return loss_sum / total, right / total


torch.manual_seed(SEED)
train_loader = DataLoader(make_dataset(1000), batch_size=40, shuffle=True)
test_loader = DataLoader(make_dataset(400), batch_size=80)
model = OrderNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 9):
    train_loss, train_acc = epoch_over(model, train_loader, criterion, optimizer)
    test_loss, test_acc = epoch_over(model, test_loader, criterion)
    print(f"Epoch {epoch:02d} | train {train_loss:.3f} {train_acc:.3f} | test {test_loss:.3f} {test_acc:.3f}")

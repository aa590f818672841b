"""Language modelling with nn.TransformerEncoder, sequences first: (S, B, D) throughout."""
import copy
import math
import random
import time

import torch
from torch import nn, Tensor


class TransformerModel(nn.Module):

    def __init__(self, ntoken: int, d_model: int, nhead: int, d_hid: int, nlayers: int, dropout: float = 0.5):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        encoder_layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        """src: [seq_len, batch_size]; returns [seq_len, batch_size, ntoken]."""
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src)).to(src.device)
        output = self.transformer_encoder(src, src_mask)
        return self.linear(output)


class PositionalEncoding(nn.Module):

    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer('pe', pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[:x.size(0)]
        return self.dropout(x)


def sentences(n: int, seed: int) -> list:
    r = random.Random(seed)
    noun = 'dog cat bird horse child farmer baker wolf miller goose'.split()
    verb = dict(zip(noun, 'chases watches follows carries feeds sells pays fears greets bites'.split()))
    adjective = 'old young tired brave small'.split()
    out = []
    for _ in range(n):
        a, b = r.choice(noun), r.choice(noun)
        out += ['the', r.choice(adjective), a, verb[a], 'the', b, 'and', 'the', b, verb[b], 'the', a, '.']
    return out


train_words, val_words, test_words = sentences(900, 1), sentences(100, 2), sentences(100, 3)
vocab = {w: i for i, w in enumerate(sorted(set(train_words)))}


def data_process(ws: list) -> Tensor:
    return torch.tensor([vocab[w] for w in ws], dtype=torch.long)


def batchify(data: Tensor, bsz: int) -> Tensor:
    """Divides the data into bsz separate columns, trimming what does not fit: [len // bsz, bsz]."""
    seq_len = data.size(0) // bsz
    data = data[:seq_len * bsz]
    return data.view(bsz, seq_len).t().contiguous()


torch.manual_seed(0)
device = torch.device('cpu')
batch_size, eval_batch_size, bptt = 20, 10, 24
train_data = batchify(data_process(train_words), batch_size).to(device)
val_data = batchify(data_process(val_words), eval_batch_size).to(device)
test_data = batchify(data_process(test_words), eval_batch_size).to(device)


def get_batch(source: Tensor, i: int):
    seq_len = min(bptt, len(source) - 1 - i)
    data = source[i:i + seq_len]
    target = source[i + 1:i + 1 + seq_len].reshape(-1)
    return data, target


ntokens = len(vocab)
model = TransformerModel(ntokens, 48, 4, 96, 2, 0.1).to(device)
criterion = nn.CrossEntropyLoss()
lr = 0.5
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.95)


def train(model: nn.Module) -> None:
    model.train()
    total_loss = 0.
    log_interval = 10
    start_time = time.time()
    num_batches = len(range(0, train_data.size(0) - 1, bptt))
    for batch, i in enumerate(range(0, train_data.size(0) - 1, bptt)):
        data, targets = get_batch(train_data, i)
        output = model(data)
        output_flat = output.view(-1, ntokens)
        loss = criterion(output_flat, targets)

        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()

        total_loss += loss.item()
        if (batch + 1) % log_interval == 0:
            ms_per_batch = (time.time() - start_time) * 1000 / log_interval
            cur_loss = total_loss / log_interval
            print(f'| epoch {epoch:3d} | {batch + 1:3d}/{num_batches:3d} batches | lr {scheduler.get_last_lr()[0]:.2f} | '
                  f'ms/batch {ms_per_batch:5.1f} | loss {cur_loss:5.2f} | ppl {math.exp(cur_loss):6.2f}')
            total_loss = 0
            start_time = time.time()


def evaluate(model: nn.Module, eval_data: Tensor) -> float:
    model.eval()
    total_loss = 0.
    with torch.no_grad():
        for i in range(0, eval_data.size(0) - 1, bptt):
            data, targets = get_batch(eval_data, i)
            output = model(data)
            total_loss += data.size(0) * criterion(output.view(-1, ntokens), targets).item()
    return total_loss / (len(eval_data) - 1)


best_val_loss, best_state = float('inf'), None
for epoch in range(1, 6):
    train(model)
    val_loss = evaluate(model, val_data)
    print(f'| end of epoch {epoch:3d} | valid loss {val_loss:5.2f} | valid ppl {math.exp(val_loss):8.2f}')
    if val_loss < best_val_loss:
        best_val_loss, best_state = val_loss, copy.deepcopy(model.state_dict())
    scheduler.step()
model.load_state_dict(best_state)
print(f'| End of training | test loss {evaluate(model, test_data):5.2f}')

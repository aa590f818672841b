"""Distil a wide sequence tagger into a narrow one."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N_TAGS, VOCAB, LENGTH = 5, 30, 14
TEMPERATURE, ALPHA = 2.0, 0.7


class Tagger(nn.Module):
    def __init__(self, width, heads, depth, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, width)
        self.position = nn.Parameter(torch.zeros(LENGTH, width))
        nn.init.normal_(self.position, std=0.1)
        layer = nn.TransformerEncoderLayer(
            d_model=width, nhead=heads, dim_feedforward=2 * width, dropout=dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=depth, enable_nested_tensor=False)
        self.classifier = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, N_TAGS))

    def forward(self, words):
        return self.classifier(self.encoder(self.embedding(words) + self.position))


def tagged(n):
    """A word's tag is its class, raised by one when the word before it is a 'trigger'."""
    words = torch.randint(0, VOCAB, (n, LENGTH))
    tags = words % N_TAGS
    trigger = F.pad(words[:, :-1] >= 24, (1, 0), value=False)
    return words, (tags + trigger.long()) % N_TAGS


def distillation_loss(student_logits, teacher_logits, tags, t=TEMPERATURE, alpha=ALPHA):
    s = student_logits.flatten(0, 1)
    with torch.no_grad():
        soft = (teacher_logits.flatten(0, 1) / t).softmax(dim=-1)
    pred = (s / t).softmax(dim=-1)
    kd = F.kl_div(pred, soft, reduction="batchmean") * t * t
    ce = F.cross_entropy(s, tags.flatten())
    return alpha * kd + (1 - alpha) * ce, kd.item()


def accuracy(net, words, tags):
    net.eval()
    with torch.no_grad():
        value = (net(words).argmax(-1) == tags).float().mean().item()
    net.train()
    return value


test = tagged(200)
teacher = Tagger(48, 4, 2, dropout=0.1)
optimizer = torch.optim.AdamW(teacher.parameters(), lr=3e-3)
for step in range(60):
    words, tags = tagged(32)
    loss = F.cross_entropy(teacher(words).flatten(0, 1), tags.flatten(), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("teacher", round(accuracy(teacher, *test), 4))
teacher.eval().requires_grad_(False)

student = Tagger(24, 2, 1)
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
for step in range(120):
    words, tags = tagged(32)
    loss, kd = distillation_loss(student(words), teacher(words), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.4f} kd {kd:.4f}")
with torch.no_grad():
    a = student(test[0]).log_softmax(-1).flatten(0, 1)
    b = teacher(test[0]).softmax(-1).flatten(0, 1)
    print("student", round(accuracy(student, *test), 4), "divergence", round(F.kl_div(a, b, reduction="batchmean").item(), 5))

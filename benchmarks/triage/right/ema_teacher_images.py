"""Semi-supervised image classification: a mean teacher, whose BatchNorm network is an average of the student."""
import copy
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def blobs(n, seed):
    """Four classes: where in the picture two bright spots lie relative to one another."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = 0.3 * torch.randn(n, 1, 12, 12, generator=g)
    shift = torch.tensor([[0, 4], [4, 0], [4, 4], [4, -4]])
    for i in range(n):
        dr, dc = shift[y[i]].tolist()
        r = int(torch.randint(0, 11 - dr, (1,), generator=g))
        c = int(torch.randint(max(0, -dc), 11 - max(0, dc), (1,), generator=g))
        x[i, 0, r:r + 2, c:c + 2] += 1.5
        x[i, 0, r + dr:r + dr + 2, c + dc:c + dc + 2] += 1.5
    return x, y


def augment(x):
    return x + 0.1 * torch.randn_like(x)


def make_net():
    def conv(i, o, s):
        return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
    return nn.Sequential(conv(1, 16, 1), conv(16, 32, 2), conv(32, 64, 1), conv(64, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4))


class MeanTeacher:
    def __init__(self, student, decay):
        self.student, self.decay, self.updates = student, decay, 0
        self.teacher = copy.deepcopy(student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self):
        self.updates += 1
        d = min(self.decay, self.updates / (self.updates + 10))
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(d).add_(s, alpha=1 - d)
        for t, s in zip(self.teacher.buffers(), self.student.buffers()):
            t.copy_(s)


def evaluate(net, loader):
    was_training = net.training
    net.eval()
    good, seen = 0, 0
    with torch.no_grad():
        for x, y in loader:
            good += int((net(x).argmax(1) == y).sum())
            seen += len(y)
    net.train(was_training)
    return good / seen


def main():
    torch.manual_seed(0)
    labelled = DataLoader(TensorDataset(*blobs(256, 1)), batch_size=32, shuffle=True, drop_last=True)
    unlabelled = DataLoader(TensorDataset(blobs(1024, 2)[0]), batch_size=64, shuffle=True, drop_last=True)
    test = DataLoader(TensorDataset(*blobs(400, 3)), batch_size=200)

    student = make_net()
    mt = MeanTeacher(student, decay=0.95)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    epochs = 8
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs * len(unlabelled))
    step = 0
    for epoch in range(epochs):
        student.train()
        mt.teacher.eval()
        supervised = 0.0
        for (u,), (x, y) in zip(unlabelled, itertools.chain.from_iterable(itertools.repeat(labelled))):
            class_loss = F.cross_entropy(student(augment(x)), y)
            with torch.no_grad():
                target = mt.teacher(augment(u)).softmax(1)
            consistency = F.mse_loss(student(augment(u)).softmax(1), target)
            weight = 5.0 * min(1.0, step / 60)
            loss = class_loss + weight * consistency
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            mt.update()
            step += 1
            supervised += class_loss.item()
        print(f"epoch {epoch} class loss {supervised / len(unlabelled):.3f} "
              f"student {evaluate(student, test):.3f} teacher {evaluate(mt.teacher, test):.3f}")


if __name__ == "__main__":
    main()

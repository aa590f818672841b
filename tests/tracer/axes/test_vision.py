"""Slips of vision transformers that are found alone, and must be found inside a whole one."""

import pytest
import torch
from torch import nn

import attnlab

PATCHES = {
    "right": lambda z: z.flatten(2).transpose(1, 2),
    "reshaped": lambda z: z.reshape(z.shape[0], -1, z.shape[1]),
}
HEADS = {
    "right": lambda z, x: z.transpose(1, 2).reshape(x.shape),
    "merged": lambda z, x: z.reshape(x.shape),
}
LAST = {"right": lambda x: x[:, 0], "entry": lambda x: x[0], "last": lambda x: x[:, -1]}


class ViT(nn.Module):
    def __init__(self, patches="right", heads="right", last="right"):
        super().__init__()
        self.patches, self.heads, self.last = PATCHES[patches], HEADS[heads], LAST[last]
        self.proj, self.head = nn.Conv2d(3, 24, 8, 8), nn.Linear(24, 10)
        self.cls = nn.Parameter(torch.zeros(1, 1, 24))
        self.pos = nn.Parameter(torch.randn(1, 17, 24))
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, img):
        x = self.patches(self.proj(img))
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        for _ in range(2):
            q, k, v = self.qkv(x).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
            x = x + self.out(self.heads((q @ k.mT / 8**0.5).softmax(-1) @ v, x))
        return self.head(self.last(x))


def rules(**changes):
    with torch.no_grad():
        found = attnlab.trace(ViT(**changes).eval(), torch.randn(2, 3, 32, 32)).findings
    return [(f.rule, f.op) for f in found if f.severity != "note"]


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"patches": "reshaped"}, ("reshape-cut", "reshape")),
        ({"heads": "merged"}, ("reshape-cut", "reshape")),
        ({"last": "entry"}, ("batch-contraction", "getitem")),
    ],
)
def test_a_slip_inside_a_whole_model_is_found(changes, finding):
    """A token that is joined to the patches must not hide what is cut behind it."""
    assert finding in rules(**changes)


def test_the_right_model_raises_nothing():
    """With the class token, or with the last patch."""
    assert rules() == rules(last="last") == []

"""One small module run in the zygote, so that no child pays for what torch does at its first call.

A page that the zygote has written is shared; one that a child writes is copied for that child. The
same holds for what Python makes of a function that has run a few times.
"""

from __future__ import annotations

import linecache
import sys

import torch

from attnlab.lab.session import Session
from attnlab.worker.tensors import pack, unpack

FILE = "attnlab-warming.py"
CALLS = 8  # after as many, Python has specialised what runs
SOURCE = """
from torch import nn

class Small(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, mask=None):
        q = self.proj(x).reshape(2, 3, 2, 2).transpose(1, 2)
        scores = (q @ q.transpose(-2, -1) / 2).masked_fill(mask.unsqueeze(1), float("-inf"))
        out = (scores.softmax(dim=-1) @ q).transpose(1, 2).flatten(2)
        return self.norm(out) + x
"""


def warm() -> None:
    """Nothing of it stays behind: neither a module nor a random state."""
    state = torch.get_rng_state()
    session = Session()
    session.ask("load", file=FILE, text=SOURCE, path=FILE, own=None)
    for seed in range(CALLS):
        session.ask("build", name="Small", init={"width": 4}, seed=seed)
        asked = {"x": torch.zeros(2, 3, 4), "mask": torch.zeros(2, 3, 3, dtype=torch.bool)}
        told = unpack(pack(asked))
        weights = session.ask("parameters")["tensors"]
        session.ask("put", tensors=unpack(pack(weights)))
        pack(session.ask("call", inputs=list(told.items())))
    linecache.cache.pop(FILE, None)
    if session.module is not None:
        sys.modules.pop(session.module.__name__, None)
    torch.set_rng_state(state)

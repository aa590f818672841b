"""Work that the zygote does once, so that children need not.

Children share the memory pages that the zygote has written, and the bytecode that Python has
specialised for functions that have run a few times.
"""

import linecache
import sys

import torch

from attnlab.candidate.session import Session
from attnlab.worker.tensors import pack, unpack

FILE = "attnlab-warming.py"
CALLS = 8  # after so many Python has specialised the bytecode
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
    """Run a small module. It leaves no module behind, and the random state is restored."""
    state = torch.get_rng_state()
    session = Session()
    session.ask("load", file=FILE, text=SOURCE, path=FILE, own=None)
    for seed in range(CALLS):
        session.ask("build", name="Small", init={"width": 4}, seed=seed)
        inputs = {"x": torch.zeros(2, 3, 4), "mask": torch.zeros(2, 3, 3, dtype=torch.bool)}
        received = unpack(pack(inputs))
        weights = session.ask("parameters")["tensors"]
        session.ask("set_parameters", tensors=unpack(pack(weights)))
        pack(session.ask("call", inputs=list(received.items())))
    linecache.cache.pop(FILE, None)
    if session.module is not None:
        sys.modules.pop(session.module.__name__, None)
    torch.set_rng_state(state)

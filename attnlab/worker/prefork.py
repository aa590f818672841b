"""What the zygote does once, so that no child pays for it.

One small module is run: a page that the zygote has written is shared; one that a child writes is
copied for that child. The same holds for what Python makes of a function that has run a few times.

And memory is put into large pages: most of what a fork costs is the copying of the table of pages.
"""

from __future__ import annotations

import ctypes
import linecache
import sys
from pathlib import Path

import torch

from attnlab.candidate.session import Session
from attnlab.worker.tensors import pack, unpack

FILE = "attnlab-warming.py"
LARGE = 2 << 20  # bytes of a large page
COLLAPSE = 25  # to madvise(2): make large pages of small ones now. Linux 6.1 and later know it
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
        session.ask("set_parameters", tensors=unpack(pack(weights)))
        pack(session.ask("call", inputs=list(told.items())))
    linecache.cache.pop(FILE, None)
    if session.module is not None:
        sys.modules.pop(session.module.__name__, None)
    torch.set_rng_state(state)


def large_pages() -> None:
    """What this process has allocated so far moves into large pages, where the system can.

    The C library asks for them itself (`client.LARGE_PAGES`); Python's own allocator does not.
    """
    maps = Path("/proc/self/maps")
    if sys.platform != "linux" or not maps.exists():
        return
    libc = ctypes.CDLL(None)
    for line in maps.read_text().splitlines():
        span, rights, _, _, inode, *_ = line.split()
        start, end = (int(at, 16) for at in span.split("-"))
        start += -start % LARGE
        size = (end - start) // LARGE * LARGE
        if rights == "rw-p" and inode == "0" and size > 0:  # where it cannot be, nothing changes
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), COLLAPSE)

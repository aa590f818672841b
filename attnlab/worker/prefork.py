"""Work that the zygote does once, so that children need not.

`warm` runs a small module: children share the memory pages that the zygote has written, and the
bytecode that Python has specialised for functions that have run a few times.

`large_pages` moves memory into large pages: most of the cost of a fork is copying the page table.
"""

import ctypes
import linecache
import sys
from pathlib import Path

import torch

from attnlab.candidate.session import Session
from attnlab.worker.tensors import pack, unpack

FILE = "attnlab-warming.py"
LARGE = 2 << 20  # bytes of a large page
COLLAPSE = 25  # advice for madvise(2) since Linux 6.1: turn small pages into large ones now
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


def large_pages() -> None:
    """Move what this process has allocated so far into large pages, where the system can.

    The C library asks for them itself (`cold_start.HEAP`); Python's own allocator does not."""
    maps = Path("/proc/self/maps")
    if sys.platform != "linux" or not maps.exists():
        return
    libc = ctypes.CDLL(None)
    for line in maps.read_text().splitlines():
        span, rights, _, _, inode, *_ = line.split()
        start, end = (int(at, 16) for at in span.split("-"))
        start += -start % LARGE
        size = (end - start) // LARGE * LARGE
        if rights == "rw-p" and inode == "0" and size > 0:  # where it fails, nothing changes
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), COLLAPSE)

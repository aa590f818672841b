"""Work that the zygote does once, so that children need not.

Children share the memory pages that the zygote has written, and the bytecode that Python has
specialised for functions that have run a few times.
"""

import ctypes
import linecache
import re
import sys
from pathlib import Path

import torch

from attnlab.candidate.session import Session
from attnlab.worker.sandbox.libc import libc
from attnlab.worker.tensors import pack, unpack

FILE = "attnlab-warming.py"
COLLAPSE = 25  # MADV_COLLAPSE, of Linux 6.1
HUGE = 2 << 20  # bytes of a huge page
OWN_PAGES = re.compile(r"(\w+)-(\w+) rw-p \S+ \S+ 0 *(?:\[heap\]|\[anon.*)?")
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


def use_huge_pages() -> None:
    """Move what this process has written to huge pages, whose entries a fork copies and the end of
    a child removes: of small ones that takes longer than most of what children do. Children still
    copy no more than the small pages that they write. Nothing changes where the system cannot."""
    maps = Path("/proc/self/maps")
    for line in maps.read_text().splitlines() if maps.exists() else ():
        if found := OWN_PAGES.fullmatch(line):
            begin = -(-int(found[1], 16) // HUGE) * HUGE
            size = int(found[2], 16) // HUGE * HUGE - begin
            if size > 0:
                libc().madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), COLLAPSE)

"""What is made at the first call and used at the second."""

from dataclasses import replace

from check_cases.cache_equals_full.prefill_equals_decode import KEPT
from sources import CACHED, INNER
from trial import ATTENTION, ENCODING, KERNEL, SELF, Case, changed

LAST = "return self.norm(self.out_proj(out)) + x"
FIRST = "B, S, D = x.shape"
PLAIN = replace(SELF, inputs=SELF.inputs[:1], promises=())
GROWING = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        self.M = max_len
        self.register_buffer("pe", self.made(0, 16))

    def made(self, start, end):
        angles = torch.outer(torch.arange(start, end), self.rates)
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    def forward(self, x):
        S = x.shape[1]
        if S > self.M:
            raise ValueError(f"{S} is too long")
        if S > len(self.pe):
            more = self.made(START, START + S - len(self.pe))
            self.pe = torch.cat((self.pe, more))
        return self.pe[:S].unsqueeze(0)
"""
WRONG = {
    "a table that grows wrongly the second time": Case(
        GROWING.replace("START", "16"), ENCODING, None
    ),
    "a length that is kept": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        self.S = getattr(self, 'S', S)"),
                (LAST, f"{LAST} * self.S")), PLAIN, None
    ),
    "the longest so far": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        self.S = max(getattr(self, 'S', 0), S)"),
                (LAST, f"{LAST} * self.S")), PLAIN, None
    ),
    "a table of the first length": Case(
        changed(ATTENTION, (FIRST, (f"{FIRST}\n        self.t = getattr(self, 't', range(S))\n"
                "        n = min(S, len(self.t))")),
                (LAST, f"{LAST} + n")), PLAIN, None
    ),
    "a length that is kept without a mask": Case(
        changed(ATTENTION, (FIRST, (f"{FIRST}\n        if mask is None:\n"
                "            self.S = getattr(self, 'S', S)")),
                (LAST, f"{LAST} * (self.S if mask is None else 1)")), SELF, None
    ),
}  # fmt: skip
RIGHT = {
    "a table that grows": Case(GROWING.replace("START", "len(self.pe)"), ENCODING, None),
    "nothing kept": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a cache that is emptied": Case(changed(CACHED, *KEPT), INNER, None),
    "a table that grows and is cut": Case(
        changed(ATTENTION, (FIRST, (f"{FIRST}\n        if len(getattr(self, 't', ())) < S:\n"
                "            self.t = x.new_zeros(S)")),
                (LAST, f"{LAST} + self.t[:S, None]"))
    ),
}  # fmt: skip

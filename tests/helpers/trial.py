"""What the tests of single checks share: a right module to break, and a quick trial of sources."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.records import CheckResult, Code, Contract, Input, Job, Position, Until

ATTENTION = """
import torch
from torch import nn
from torch.nn import functional as F

class M(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.H = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        B, S, D = x.shape
        q, k, v = self.qkv_proj(x).view(B, S, 3, self.H, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        weights = scores.softmax(-1)
        heads = weights @ v
        out = heads.transpose(1, 2).reshape(B, S, D)
        return self.norm(self.out_proj(out)) + x
"""
KERNEL = """
import torch
from torch import nn
from torch.nn import functional as F

class M(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.H = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        parts = self.qkv_proj(x).chunk(3, dim=-1)
        q, k, v = (p.unflatten(-1, (self.H, -1)).transpose(1, 2) for p in parts)
        keep = None if mask is None else ~mask[:, None]
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.norm(self.out_proj(heads.transpose(1, 2).flatten(2))) + x
"""
TABLE = """
import math
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * frequency)
        pe[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("pe", pe)

    def forward(self, x):
        S = x.shape[1]
        if S > len(self.pe):
            raise ValueError(f"{S} is too long")
        return self.pe[:S].unsqueeze(0)
"""

SELF = Contract(
    sizes={"B": 2, "S": 4, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(
        Input(name="x", axes=("B", "S", "D")),
        Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True),
    ),
    output=("B", "S", "D"),
    promises=("averaging",),
)
DROPOUT = replace(SELF, promises=("averaging", "dropout"))
EMPTY_ROWS = replace(SELF, promises=("averaging", "empty-rows"))
ENCODING = Contract(
    sizes={"B": 2, "S": 4, "D": 8, "M": 20},
    init={"max_len": "M", "d_model": "D"},
    inputs=(Input(name="x", axes=("B", "S", "D")),),
    output=("1", "S", "D"),
    buffers=("pe",),
    position=Position(),
)
UNIT = "MultiHeadSelfAttention"
FIRST = "B, S, D = x.shape"  # lines of ATTENTION to change
LAST = "return self.norm(self.out_proj(out)) + x"


def changed(source: str, *pairs: tuple[str, str]) -> str:
    """The source with each first text, which must stand there once, replaced by the second."""
    for old, new in pairs:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


@dataclass(frozen=True)
class Case:
    """A source and what it has promised."""

    source: str
    contract: Contract = SELF
    reference: str | Code | None = UNIT
    full: bool = False  # also what is checked on demand only


def tried(case: Case, seed: int = 1, until: Until = "end") -> tuple[CheckResult, ...]:
    """What all checks say of the case, what to look at first standing first."""
    job = Job(
        candidate=Code(file="m.py", text=case.source, name="M"),
        contract=case.contract,
        reference=case.reference,
        stages=("check",),
        full=case.full,
        until=until,
        seed=seed,
    )
    report = run_job(job, lambda limits, own, deadline: LocalHost())
    assert report.outcome == "ok", report.message
    return report.checks


def blames(results: tuple[CheckResult, ...]) -> str:
    """The id of the first failure; none of the checks may have been unable to tell."""
    errors = [c for c in results if c.outcome == "error"]
    assert not errors, errors
    return results[0].id if results[0].outcome == "failed" else ""


def passes(results: tuple[CheckResult, ...], check: str) -> bool:
    """Nothing failed, and this check was really made."""
    outcomes = {c.id: c.outcome for c in results}
    return set(outcomes.values()) <= {"passed", "skipped"} and outcomes[check] == "passed"

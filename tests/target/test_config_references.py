"""A layer of a package that takes a config object, beside a module that takes sizes."""

from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.records import Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.diff_target import diff_job

PACKAGED = """
import torch
from torch import nn
from .settings import WideConfig


class WideRotaryEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.hd = config.head_dim

    def forward(self, x, position_ids):
        w = 10000.0 ** (-torch.arange(0, self.hd, 2, dtype=torch.float64) / self.hd)
        angles = torch.cat((position_ids[..., None] * w,) * 2, -1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


class WideAttention(nn.Module):
    def __init__(self, config: WideConfig, layer_idx: int):
        super().__init__()
        d, self.hd, bias = config.hidden_size, config.head_dim, config.attention_bias
        self.q_proj = nn.Linear(d, config.num_attention_heads * self.hd, bias=bias)
        self.k_proj = nn.Linear(d, config.num_key_value_heads * self.hd, bias=bias)
        self.v_proj = nn.Linear(d, config.num_key_value_heads * self.hd, bias=bias)
        self.o_proj = nn.Linear(config.num_attention_heads * self.hd, d, bias=bias)

    def forward(self, hidden_states, position_embeddings, attention_mask=None, **kwargs):
        def turn(t):
            a, b = t.chunk(2, -1)
            return t * cos[:, None] + torch.cat((-b, a), -1) * sin[:, None]

        cos, sin = position_embeddings
        layers = self.q_proj, self.k_proj, self.v_proj
        q, k, v = (f(hidden_states).unflatten(-1, (-1, self.hd)).transpose(1, 2) for f in layers)
        scores = turn(q) @ turn(k).mT * self.hd**-0.5 + attention_mask
        mixed = scores.softmax(-1) @ v
        return self.o_proj(mixed.transpose(1, 2).flatten(2)), scores
"""
CONFIG = """
class WideConfig:
    def __init__(self, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8,
                 head_dim=128, attention_bias=True):
        self.hidden_size, self.num_attention_heads = hidden_size, num_attention_heads
        self.num_key_value_heads, self.head_dim = num_key_value_heads, head_dim
        self.attention_bias = attention_bias
"""
MINE = """
import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, d_model=32, n_heads=4):
        super().__init__()
        self.h, self.hd = n_heads, d_model // n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )

    def forward(self, x):
        b, s, d = x.shape
        layers = self.q_proj, self.k_proj, self.v_proj
        q, k, v = (f(x).view(b, s, self.h, self.hd).transpose(1, 2) for f in layers)
        w = 10000.0 ** (-torch.arange(0, self.hd, 2) / self.hd)
        z = torch.polar(torch.ones(s, self.hd // 2).to(w), torch.arange(s)[:, None] * w)

        def turn(t):
            z_t = torch.complex(*t.chunk(2, -1)) * z
            return torch.cat((z_t.real, z_t.imag), -1)

        scores = turn(q) @ turn(k).mT / self.hd**0.5
        scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool).triu(1), -torch.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d))
"""


def compared(folder, monkeypatch, mine):
    package = folder / "wide_models"
    package.mkdir(exist_ok=True)
    for name, text in (("__init__", ""), ("modeling", PACKAGED), ("settings", CONFIG)):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "own_attention.py").write_text(mine, encoding="utf-8")
    monkeypatch.chdir(folder)
    job = diff_job(
        TraceCommand(target="own_attention.py:Attn"),
        "wide_models.modeling:WideAttention",
        Limits(seconds=60),
    )
    return job, run_job(job, lambda *_: LocalHost()).diff


def test_config_positions_and_mask_follow_from_what_mine_takes(tmp_path, monkeypatch):
    """Heads, biases, angles and causality; what was guessed is said."""
    job, found = compared(tmp_path, monkeypatch, MINE)
    assert (found.outcome, found.diagnosis) == ("same", ()), found.message
    for part in ("hidden_size=d_model", "num_key_value_heads=n_heads", "layer_idx=0", "causal"):
        assert part in job.reference_says
    wrong = MINE.replace("/ self.hd**0.5", "/ self.hd")
    (named,) = compared(tmp_path, monkeypatch, wrong)[1].diagnosis
    assert named.relation == "scale"
    assert "/ self.hd" in named.source

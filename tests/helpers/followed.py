"""A few lines of code, run under a recorder, with the axes of every row."""

from __future__ import annotations

import re

import torch

from attnlab.sizes import UnknownSize, measure
from attnlab.tracer.raw_trace import KnownAxes, RawTrace, build_raw_trace
from attnlab.tracer.recorder import Recorder

SIZES = {"B": 3, "S": 11, "T": 13, "D": 42, "H": 6, "hd": 7, "Hkv": 2, "V": 97}
INPUTS = {
    "x": "B S D",
    "y": "B T D",
    "q": "B H S hd",
    "k": "B H S hd",
    "v": "B H S hd",
    "kv": "B Hkv S hd",
    "mask": "B S S",
    "pad": "B S",
    "ids": "B S",
    "one": "B S 1",
    "picture": "B C h w",
}
MORE = {"C": 5, "h": 8, "w": 12}
KINDS = {"mask": torch.bool, "pad": torch.bool, "ids": torch.int64}


def followed(code: str, uses: str = "") -> RawTrace:
    """The trace of `code`; the inputs it names are drawn with the axes of `INPUTS`."""
    torch.manual_seed(0)
    names = uses.split() or [n for n in INPUTS if re.search(rf"\b{n}\b", code)]
    given = {n: _drawn(n) for n in names}
    space = {"torch": torch, "F": torch.nn.functional, **given, **SIZES, "W": _weights()}
    recorder = Recorder(space["W"])
    recorder.name_inputs(list(given.values()))
    with torch.no_grad(), recorder:
        exec(compile(code, "code.py", "exec"), space)
    return build_raw_trace(
        recorder, known=KnownAxes([INPUTS[n].split() for n in names], SIZES | MORE)
    )


def _drawn(name: str) -> torch.Tensor:
    shape = [measure(a, SIZES | MORE) for a in INPUTS[name].split()]
    kind = KINDS.get(name)
    if kind is None:
        return torch.randn(shape)
    return torch.rand(shape) < 0.5 if kind is torch.bool else torch.randint(97, shape)


def _weights() -> torch.nn.Module:
    """A module whose layers and tables the code may use."""
    made = torch.nn.Module()
    made.qkv = torch.nn.Linear(42, 126)
    made.up = torch.nn.Linear(42, 51)
    made.tokens = torch.nn.Embedding(97, 42)
    made.table = torch.nn.Parameter(torch.randn(64, 42))
    made.register_buffer("slopes", torch.randn(6))
    return made


def last(raw: RawTrace) -> str:
    """The axes of the last row, in one text."""
    return " ".join(raw.ops[-1].axes)


def told(raw: RawTrace) -> list[tuple[str, int]]:
    """The findings, as rules and lines."""
    return [(f.rule, f.line) for f in raw.findings]


def true(raw: RawTrace) -> bool:
    """Every name that can be measured measures what it names."""
    sizes = SIZES | MORE
    for op in raw.ops:
        for name, n in zip(op.axes, op.shape, strict=True):
            try:
                if measure(name.replace("'", ""), sizes) != n:
                    return False
            except UnknownSize:
                continue
    return True

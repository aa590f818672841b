"""Calls to be looked at by the extras of a trace: whatever is called, with its inputs by name."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.records import TraceOptions
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.capture import capture
from attnlab.tracer.raw_trace import RawTrace


def shot(
    what: Any, root: nn.Module | None = None, options: TraceOptions | None = None, **given: Any
) -> TracedCall:
    return TracedCall(
        call=lambda pairs: what(*(t for _, t in pairs)),
        given=list(given.items()),
        root=what if isinstance(what, nn.Module) else root,
        options=options or TraceOptions(),
    )


def capture_of(
    what: Any, root: nn.Module | None = None, options: TraceOptions | None = None, **given: Any
) -> RawTrace:
    """The raw trace with what `options` asks for."""
    return capture(shot(what, root, options, **given))


class Plain(nn.Module):
    """Attention as it is written in every tutorial."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = heads
        self.proj = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(t) for t in self.proj(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = F.softmax(scores, -1)
        return (weights @ v).transpose(1, 2).flatten(2)

    def split(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)


CAUSAL = torch.ones(4, 4, dtype=torch.bool).triu(1)


def x(*shape: int) -> Tensor:
    return torch.randn(shape or (2, 4, 8), generator=torch.Generator().manual_seed(1))

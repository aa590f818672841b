"""What a call costs, against numbers that are counted in another way."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attnlab.api import parse_dims
from attnlab.records import Trace, TraceOptions
from attnlab.tracer.cost import cost_of
from attnlab.tracer.in_process import trace_call

B, S, D, H, HKV = 3, 7, 24, 6, 2
HD = D // H


class Grouped(nn.Module):
    """Two heads of keys for six of queries; a table is added, and the head shares its weight."""

    def __init__(self, fused: bool = False) -> None:
        super().__init__()
        self.fused, self.num_heads = fused, H
        self.emb = nn.Embedding(53, D)
        self.pos = nn.Embedding(32, D)
        self.q, self.o = nn.Linear(D, D), nn.Linear(D, D, bias=False)
        self.k, self.v = nn.Linear(D, HKV * HD), nn.Linear(D, HKV * HD)
        self.head = nn.Linear(D, 53, bias=False)
        self.head.weight = self.emb.weight
        self.register_buffer("scale", torch.ones(5))

    def forward(self, ids: Tensor) -> Tensor:
        b, s = ids.shape
        x = self.emb(ids) + self.pos(torch.arange(s, device=ids.device))
        q = self.q(x).view(b, s, H, HD).transpose(1, 2)
        k = self.k(x).view(b, s, HKV, HD).transpose(1, 2).repeat_interleave(H // HKV, 1)
        v = self.v(x).view(b, s, HKV, HD).transpose(1, 2).repeat_interleave(H // HKV, 1)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) / HD**0.5).softmax(-1) @ v
        return self.head(self.o(y.transpose(1, 2).reshape(b, s, D)))


def traced(module: nn.Module, batch: int = B, length: int = S) -> Trace:
    ids = torch.randint(0, 53, (batch, length))
    with torch.no_grad():
        return trace_call(module, (ids,), {}, parse_dims("ids: B S"), TraceOptions(cost=True)).trace


def costs(trace: Trace, at: dict[str, int] | None = None) -> dict[str, int]:
    return {cost.id: cost.value for cost in cost_of(trace, at).costs}


def counted(module: nn.Module, batch: int, length: int) -> int:
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        module(torch.randint(0, 53, (batch, length)))
    return counter.get_total_flops()


def test_flops_are_those_of_pytorch_and_formulas_hold_elsewhere():
    """Counted at one size, the formula gives what FlopCounterMode counts at another (row C13)."""
    module = Grouped()
    trace = traced(module)
    assert costs(trace)["flops"] == counted(module, B, S) > 0
    moved = costs(trace, trace.sizes | {"B": 5, "S": 19})
    assert moved["flops"] == counted(module, 5, 19)


def test_a_fused_attention_on_a_cpu_costs_what_a_written_one_does():
    """FlopCounterMode counts none for it; the arithmetic is the same (row C13)."""
    plain, fused = costs(traced(Grouped())), costs(traced(Grouped(fused=True)))
    assert fused["flops"] == plain["flops"]
    assert fused["cache"] == plain["cache"]
    assert fused["pairs"] == 0 < plain["pairs"]


def test_weights_caches_and_tables_are_counted_by_hand():
    """A tied head is counted once; keys and values before they are repeated; 3 S D for a table."""
    found = costs(traced(Grouped()))
    linear = D * D + D + D * D + 2 * (D * HKV * HD + HKV * HD)
    assert found["parameters"] == 53 * D + 32 * D + linear
    assert found["weights"] == 4 * found["parameters"]
    assert found["buffers"] == 5 * 4
    assert found["cache"] == 2 * B * S * HKV * HD * 4
    assert found["positions"] == (2 * B * S * D + S * D) * 4
    assert costs(traced(Grouped(), batch=1))["positions"] == 3 * S * D * 4
    assert found["pairs"] == 3 * B * H * S * S * 4  # scores, scaled, weights


def test_modules_add_up_to_the_whole():
    """No FLOP and no parameter is counted in two modules or in none."""
    report = cost_of(traced(Grouped()))
    total = {cost.id: cost.value for cost in report.costs}
    assert sum(m.flops for m in report.modules) == total["flops"]
    assert sum(m.parameters for m in report.modules) == total["parameters"]
    assert sum(m.bytes for m in report.modules) == total["weights"] + total["buffers"]


def test_a_table_that_the_first_call_fills_ends_no_count():
    """Later calls find it, so they run fewer operations than the first one."""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj, self.mask = nn.Linear(D, D), None

        def forward(self, x: Tensor) -> Tensor:
            if self.mask is None:
                self.mask = torch.ones(S, S).tril()
            return self.mask @ self.proj(x)

    with torch.no_grad():
        options = TraceOptions(cost=True)
        found = trace_call(Cached(), (torch.randn(B, S, D),), {}, parse_dims("x: B S D"), options)
    assert costs(found.trace)["flops"] == 2 * B * S * D * D + 2 * B * S * S * D


def test_functions_and_modules_without_weights_have_no_parameters():
    """Nothing is divided by nothing."""
    options = TraceOptions(cost=True)
    gelu = nn.GELU()
    with torch.no_grad():
        found = trace_call(gelu, (torch.randn(B, S, D),), {}, parse_dims("input: B S D"), options)
    assert set(costs(found.trace).values()) == {0}
    assert cost_of(found.trace).modules == ()


@pytest.mark.parametrize("size", [10**15])
def test_formulas_have_no_largest_size(size):
    """They are whole numbers of Python, which no tensor is."""
    trace = traced(Grouped())
    moved = costs(trace, trace.sizes | {"S": size})
    assert moved["pairs"] == 3 * B * H * size * size * 4

"""What a call costs, against numbers that are counted in another way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attnlab.api import parse_dims
from attnlab.records import Trace, TraceOptions
from attnlab.sizes import Sizes
from attnlab.tracer.cost import Costs, cost_of
from attnlab.tracer.counted_run import Run
from attnlab.tracer.formulas import evaluate, format_formula
from attnlab.tracer.in_process import trace_call

B, S, D, H, HKV = 3, 7, 24, 6, 2
HD = D // H


class Grouped(nn.Module):
    """Two heads of keys for six of queries; a table is added, and the head shares its weight."""

    def __init__(self, fused: bool = False, heads: int = H, kv: int = HKV, hd: int = HD) -> None:
        super().__init__()
        self.fused, self.heads, self.kv, self.hd = fused, heads, kv, hd
        width = heads * hd
        self.emb = nn.Embedding(53, width)
        self.pos = nn.Embedding(32, width)
        self.q, self.o = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, kv * hd), nn.Linear(width, kv * hd)
        self.head = nn.Linear(width, 53, bias=False)
        self.head.weight = self.emb.weight
        self.register_buffer("scale", torch.ones(5))

    def forward(self, ids: Tensor) -> Tensor:
        b, s = ids.shape
        x = self.emb(ids) + self.pos(torch.arange(s, device=ids.device))
        q = self.q(x).view(b, s, self.heads, self.hd).transpose(1, 2)
        k = self.k(x).view(b, s, self.kv, self.hd).transpose(1, 2)
        v = self.v(x).view(b, s, self.kv, self.hd).transpose(1, 2)
        k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) / self.hd**0.5).softmax(-1) @ v
        return self.head(self.o(y.transpose(1, 2).reshape(b, s, -1)))


class Packed(nn.Module):
    """PyTorch's attention, whose weights of queries, keys and values are one."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attn(x, x, x)[0]


class Cross(nn.Module):
    """Keys and values of another sequence, which einsum takes before the weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        k, v = self.kv(memory).chunk(2, -1)
        weights = torch.einsum("bkd,bqd->bqk", k, self.q(x)).softmax(-1)
        return torch.einsum("bkd,bqk->bqd", v, weights)


class Patches(nn.Module):
    """A picture of 3 channels as 16 patches, with one more token before them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.patches, self.layer = nn.Conv2d(3, width, 4, 4), Packed(width, heads)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.table = nn.Parameter(torch.zeros(1, 17, width))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), patches], 1) + self.table
        return self.layer(x)


def run(module: nn.Module, dims: str, sizes: Sizes, *shapes: str) -> Run:
    """What is counted where the inputs have the shapes that the sizes give."""
    inputs = [torch.randn([sizes.get(a) or int(a) for a in shape.split()]) for shape in shapes]
    names = [text.partition(":")[0] for text in dims.split(", ")]
    options = TraceOptions(cost=True)
    with torch.no_grad():
        found = trace_call(
            module, (), dict(zip(names, inputs, strict=True)), parse_dims(dims), options
        )
    return Run(found.trace, sizes, [tuple(t.shape) for t in inputs])


def changed(first: Sizes, *symbols: str) -> list[Sizes]:
    """The sizes, each with another one for one of the symbols, and all of them twice changed."""
    more = {"hd": 2, "Hkv": -1}
    alone = [{**first, s: first[s] + more.get(s, 1)} for s in symbols]
    last = {**first, **{s: first[s] + 2 * more.get(s, 1) for s in symbols if s != "Hkv"}}
    return [{**sizes, "D": sizes["H"] * sizes["hd"]} for sizes in (first, *alone, last)]


def traced(module: nn.Module, batch: int = B, length: int = S) -> Trace:
    ids = torch.randint(0, 53, (batch, length))
    with torch.no_grad():
        return trace_call(module, (ids,), {}, parse_dims("ids: B S"), TraceOptions(cost=True)).trace


def costs(trace: Trace) -> dict[str, int | None]:
    return {cost.id: cost.value for cost in cost_of(trace).costs}


def counted(module: nn.Module, batch: int, length: int) -> int:
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        module(torch.randint(0, 53, (batch, length)))
    return counter.get_total_flops()


LAYERS: dict[str, tuple[Callable[[Sizes], Run], Sizes, str, dict[str, str]]] = {
    "packed": (
        lambda z: run(Packed(z["D"], z["H"]), "x: B S D", z, "B S D"),
        {"B": 2, "S": 5, "H": 3, "hd": 4},
        "B S H hd",
        {"parameters": "4*D**2 + 4*D", "flops": "8*B*S*D**2 + 4*B*S**2*D", "cache": "8*B*S*D"},
    ),
    "cross-attention": (  # T = D / 2, and S and B are sizes of others as well
        lambda z: run(Cross(z["D"]), "x: B S D, memory: B T D", z, "B S D", "B T D"),
        {"B": 2, "S": 2, "T": 6, "H": 1, "hd": 12},
        "B S T hd",
        {"flops": "2*B*S*D**2 + 4*B*S*T*D + 4*B*T*D**2", "cache": "8*B*T*D"},
    ),
    "picture": (  # 3 channels and 3 heads
        lambda z: run(Patches(z["D"], z["H"]), "x: B 3 16 16", z, "B 3 16 16"),
        {"B": 2, "H": 3, "hd": 4},
        "B H hd",
        {"flops": "136*B*D**2 + 2692*B*D", "positions": "136*B*D + 68*D", "pairs": "2312*B*H"},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_formulas_give_what_is_counted_at_other_sizes(name):
    """Solved from some sizes, right at others, although sizes of different axes coincide."""
    count, first, symbols, expected = LAYERS[name]
    *several, last = changed(first, *symbols.split())
    found = Costs([count(sizes) for sizes in several])
    there = count(last)
    for kind in there.items:
        formula = found.formula(kind)
        assert formula is not None
        if kind == "pairs":
            there.among(found.chosen)
        assert evaluate(formula, last) == there.count(kind)
    told = {kind: format_formula(found.formula(kind) or {}) for kind in expected}
    assert {k: {*f.split(" + ")} for k, f in told.items()} == {
        k: {*f.split(" + ")} for k, f in expected.items()
    }


def test_heads_of_keys_have_a_symbol_of_their_own():
    """Hkv is 1 in the example, where no number in a formula shows it."""

    def count(sizes: Sizes) -> Run:
        heads, kv, width = sizes["H"], sizes["Hkv"], sizes["hd"]
        return Run(traced(Grouped(False, heads, kv, width), sizes["B"], sizes["S"]), sizes)

    first = {"B": 2, "S": 5, "H": 2, "Hkv": 1, "hd": 4, "D": 8}
    several = [first, {**first, "B": 3}, {**first, "S": 6}, {**first, "Hkv": 2}]
    several += [{**first, "H": 3, "D": 12}, {**first, "hd": 6, "D": 12}]
    found = Costs([count(sizes) for sizes in several])
    assert format_formula(found.formula("cache") or {}) == "8*B*S*Hkv*hd"
    flops = found.formula("flops")
    assert flops is not None
    assert evaluate(flops, {"B": 5, "S": 19, "H": 6, "Hkv": 2, "hd": 4, "D": 24}) == counted(
        Grouped(), 5, 19
    )


def test_a_formula_that_fails_is_none():
    """Work that doubles from some length on is no power of it."""

    class Long(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj = nn.Linear(12, 12)

        def forward(self, x: Tensor) -> Tensor:
            return self.proj(self.proj(x)) if x.shape[1] > 6 else self.proj(x)

    sizes = [{"B": 2, "S": s, "D": 12} for s in (5, 6, 8)]
    runs = [run(Long(), "x: B S D", z, "B S D") for z in sizes]
    assert Costs(runs[:2]).formula("flops") is not None
    found = Costs(runs[:2], runs[2:])
    assert found.formula("flops") is None
    assert {c.id: c.formula for c in found.report(runs[2], sizes[2]).costs}["flops"] == ""


def test_flops_are_those_of_pytorch():
    """Counted by its own formulas (row C13)."""
    assert costs(traced(Grouped()))["flops"] == counted(Grouped(), B, S) > 0


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
    """No FLOP and no parameter is counted in two modules or in none; a tied one says with what."""
    report = cost_of(traced(Grouped()))
    total = {cost.id: cost.value for cost in report.costs}
    assert sum(m.flops for m in report.modules) == total["flops"]
    assert sum(m.parameters for m in report.modules) == total["parameters"]
    assert sum(m.bytes for m in report.modules) == total["weights"] + total["buffers"]
    assert {m.name: m.tied for m in report.modules if m.tied} == {"head": "emb"}


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

    found = run(Cached(), "x: B S D", {"B": B, "S": S, "D": D}, "B S D")
    assert found.count("flops") == 2 * B * S * D * D + 2 * B * S * S * D


def test_functions_and_modules_without_weights_have_no_parameters():
    """Nothing is divided by nothing."""
    found = run(nn.GELU(), "input: B S D", {"B": B, "S": S, "D": D}, "B S D")
    assert set(costs(found.trace).values()) == {0}
    assert found.modules == {}


@pytest.mark.parametrize("given", ["q, k, v", "k, v", "x"])
def test_keys_and_values_are_two_tensors_wherever_they_come_from(given):
    """Also those that are arguments of forward, or x itself."""

    class Attention(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k, v = (q, q) if given == "x" else (k, v)
            q = q * 2 if given == "k, v" else q
            return (q @ k.mT).softmax(-1) @ v

    sizes = {"B": B, "S": S, "D": D}
    found = run(Attention(), "q: B S D, k: B S D, v: B S D", sizes, *["B S D"] * 3)
    assert found.count("cache") == 8 * B * S * D

"""Time of a traced forward pass over a plain one. Run: .venv/bin/python benchmarks/tracing.py

A1 (MultiHeadSelfAttention) at B=2, S=4, D=8, H=2 under no_grad, one thread. Each line is measured
beside the plain forward, in turns, and is the median of the ratios; records are built after a run,
so `record` is what a model feels and `record + build` what a caller of the trace waits for.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch.overrides import TorchFunctionMode

from attnlab.lab.raw import collect
from attnlab.lab.recorder import Recorder
from attnlab.references.attention import MultiHeadSelfAttention

ROUNDS, CALLS, LIMIT = 60, 20, 4.0


class Empty(TorchFunctionMode):
    """The floor: a mode that does nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = MultiHeadSelfAttention(embed_dim=8, num_heads=2).eval()
    x = torch.randn(2, 4, 8)
    mask = torch.ones(2, 4, 4, dtype=torch.bool).triu(1)

    def plain() -> None:
        module(x, mask)

    def empty() -> None:
        with Empty():
            module(x, mask)

    def record() -> Recorder:
        with Recorder(module) as recorder:
            module(x, mask)
        return recorder

    def build() -> None:
        collect(record())

    lines = {"plain": plain, "empty mode": empty, "record": record, "record + build": build}
    with torch.no_grad():
        times = measure(lines)
    table = Table("run", "us", "x plain", "limit")
    ratio = {
        n: statistics.median(a / b for a, b in zip(t, times["plain"], strict=True))
        for n, t in times.items()
    }
    for name, found in times.items():
        limit = f"{LIMIT:g}" if name == "record" else ""
        table.add_row(name, f"{statistics.median(found) * 1e6:.0f}", f"{ratio[name]:.2f}", limit)
    Console().print(table)
    print("torch._dynamo imported:", "torch._dynamo" in sys.modules)
    return int(ratio["record"] > LIMIT or "torch._dynamo" in sys.modules)


def measure(lines: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """CPU seconds per call, the lines in turns so that noise hits all of them alike."""
    for run in lines.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(ROUNDS):
        for name, run in lines.items():
            start = time.process_time()
            for _ in range(CALLS):
                run()
            times[name].append((time.process_time() - start) / CALLS)
    return times


if __name__ == "__main__":
    sys.exit(main())

"""Time and memory of a traced forward pass over a plain one, ours and others'.

    python benchmarks/tracing.py [WORD]      only cases whose name holds WORD

A1 (MultiHeadSelfAttention) at B=2, S=4, D=8, H=2 and GPT-2 small at S=128 with random weights, one
thread, no gradients. In one process the lines take turns; a time is the median of its turns in CPU
seconds, a ratio the median of the ratios to the plain pass of the same turn. Extra memory is the
peak of a forked process over that of a plain pass (Linux). The other tools are the `bench` extra,
GPT-2 is in the `peers` extra; what is not installed is left out. Exits 1 when a limit is passed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from memory import extra
from rich.console import Console
from rich.table import Table
from tracers import Case, Line, others, ours

from attnlab.references.attention import MultiHeadSelfAttention

LIMITS = {
    ("A1", "attnlab, the run"): 3.5,
    ("A1", "attnlab, rows and axes"): 10.0,
    ("GPT-2", "attnlab, rows"): 1.2,
    ("GPT-2", "attnlab, rows and axes"): 1.5,
}
EXTRA_MB, FIRST_MS, TURN = 20.0, 50.0, 0.02  # TURN: seconds that a line runs before the next one
console = Console()


def main(word: str = "") -> int:
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")  # of the other tools, about their own parts
    torch.set_num_threads(1)
    beyond = 0
    with torch.no_grad():
        for name, build, rounds in (("A1", small, 15), ("GPT-2", large, 5)):
            if word.lower() not in name.lower():
                continue
            try:
                beyond += compare(name, build(), rounds)
            except ImportError:
                console.print(f"{name}: transformers is not installed (make test-peers does it)")
        if word.lower() in "layers":
            beyond += deep()
    beyond += first() if word.lower() in "first" else 0
    return int(beyond > 0)


def small() -> Case:
    torch.manual_seed(0)
    module = MultiHeadSelfAttention(embed_dim=8, num_heads=2).eval()
    mask = torch.ones(2, 4, 4, dtype=torch.bool).triu(1)
    inputs = {"x": torch.randn(2, 4, 8), "mask": mask}
    sizes = {"B": 2, "S": 4, "D": 8, "H": 2, "hd": 4}
    return Case("A1, B=2 S=4 D=8 H=2", module, inputs, {"x": "B S D", "mask": "B S S"}, sizes)


def large(layers: int = 12, S: int = 128, **more: int) -> Case:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(n_layer=layers, use_cache=False, **more)
    inputs = {"input_ids": torch.randint(1000, (1, S))}
    sizes = {"S": S, "D": config.n_embd, "H": config.n_head, "hd": config.n_embd // config.n_head}
    name = f"GPT-2, {layers} layers, S={S}"
    return Case(name, GPT2Model(config).eval(), inputs, {"input_ids": "B S"}, sizes)


# ---------------------------------------------------------------- side by side


def compare(key: str, case: Case, rounds: int) -> int:
    lines, left_out = together(case)
    times, memory = measure(lines, rounds), extra(lines)
    table = Table("run", "ms", "x plain", "limit", "extra MB", title=case.name)
    plain, beyond = times["plain"], 0
    for line in lines:
        found = times[line.name]
        ratio = statistics.median(a / b for a, b in zip(found, plain, strict=True))
        limit = LIMITS.get((key, line.name))
        megabytes = memory[line.name]
        much = line.name.startswith("attnlab") and (megabytes or 0.0) > EXTRA_MB
        late = limit is not None and ratio > limit
        beyond += late + much
        cells = f"{statistics.median(found) * 1e3:.3f}", f"{ratio:.2f}", f"{limit or ''}"
        size = "" if megabytes is None else f"{megabytes:.1f}"
        table.add_row(line.name, *cells, size, style="red" if late or much else "")
    console.print(table)
    for text in left_out:
        console.print(text, markup=False)
    return beyond


def together(case: Case) -> tuple[list[Line], list[str]]:
    """All lines that work, run once, and a sentence for each that does not."""
    lines, left_out = ours(case), []
    for name, build in others(case):
        try:
            line = build()
            once(line)
        except Exception as error:
            left_out.append(f"{name} is left out: {type(error).__name__}: {str(error)[:160]}")
        else:
            lines.append(line)
    return lines, left_out


def once(line: Line) -> float:
    line.before()
    try:
        start = time.process_time()
        line.run()
        return time.process_time() - start
    finally:
        line.after()


def measure(lines: list[Line], rounds: int) -> dict[str, list[float]]:
    """CPU seconds per call, the lines in turns so that noise hits all of them alike."""
    calls = {line.name: max(1, min(20, int(TURN / max(once(line), 1e-6)))) for line in lines}
    times: dict[str, list[float]] = {line.name: [] for line in lines}
    for _ in range(rounds):
        for line in lines:
            line.before()
            start = time.process_time()
            for _ in range(calls[line.name]):
                line.run()
            times[line.name].append((time.process_time() - start) / calls[line.name])
            line.after()
    return times


# ---------------------------------------------------------------- depth, and the first trace


def deep() -> int:
    """A trace keeps no activations: four times as many must not cost four times the memory."""
    table = Table("model", "activations MB", "extra MB of rows and axes", title="48 layers")
    sizes = []
    for S in (64, 256):
        try:
            case = large(48, S, n_embd=96, n_head=6)
        except ImportError:
            return 0
        plain, *_, axes = ours(case)
        once(axes)
        found = extra([plain, axes])[axes.name]
        if found is None:
            return 0
        sizes.append(found)
        table.add_row(case.name, f"{activations(case):.0f}", f"{found:.1f}")
    console.print(table)
    return int(sizes[1] > EXTRA_MB + sizes[0])


def activations(case: Case) -> float:
    """Megabytes of everything that is made on the way and is no view of something else."""
    from attnlab.tracer.raw_trace import build_raw_trace
    from attnlab.tracer.recorder import Recorder

    with Recorder(case.module) as recorder:
        case.call()
    ops = build_raw_trace(recorder).ops
    return sum(4 * torch.Size(op.shape).numel() for op in ops if not op.view) / 1e6


FIRST = """
import sys, time
import torch
from attnlab.references.attention import MultiHeadSelfAttention
torch.set_num_threads(1)
module = MultiHeadSelfAttention(embed_dim=8, num_heads=2).eval()
x = torch.randn(2, 4, 8)
start = time.process_time()
if sys.argv[1] == "trace":
    import attnlab
    attnlab.trace(module, x, dims="x: B S D")
else:
    with torch.no_grad():
        module(x)
print(time.process_time() - start, "torch._dynamo" in sys.modules)
"""


def first(runs: int = 5) -> int:
    """The first trace of a process, with all that it imports, over a first plain pass.

    As after an installation, modules come from bytecode: a round before the count writes it.
    """
    plain, trace, dynamo = [], [], False
    with tempfile.TemporaryDirectory() as cache:
        room = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        room["PYTHONPYCACHEPREFIX"] = cache
        for count in range(1 + runs):
            for what, found in (("plain", plain), ("trace", trace)):
                seconds, imported = _first(what, room)
                dynamo |= what == "trace" and imported == "True"
                if count:
                    found.append(float(seconds))
    over = (statistics.median(trace) - statistics.median(plain)) * 1e3
    console.print(
        f"first trace after import torch: {over:.0f} ms over a first plain pass "
        f"(limit {FIRST_MS:.0f} ms); torch._dynamo imported: {dynamo}"
    )
    return int(over > FIRST_MS or dynamo)


def _first(what: str, room: dict[str, str]) -> list[str]:
    command = [sys.executable, "-c", FIRST, what]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=room)
    return done.stdout.split()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

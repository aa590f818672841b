"""How long commands take with the warm judge, against importing torch alone.

    python -m benchmarks.latency [RUNS]

Wall and CPU seconds of whole processes, medians of runs in turns, as ratios to
`python -c "import torch"`. The judge that serves them is started for this and stopped at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

PLAIN = """
import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))
"""
ATTNLAB = [sys.executable, "-m", "attnlab"]
TORCH = [sys.executable, "-c", "import torch"]
FRONT = [sys.executable, "-c", "import typer, rich, pydantic"]
LIMITS = {"second grade": 0.20, "trace of a small file": 0.25, "verdict after a save": 0.30}


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process, without those of the judge."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime


def measure_watch(folder: Path, environment: dict[str, str], runs: int) -> list[float]:
    """Wall seconds from saving a file to the last line of its verdict, in one `attnlab watch`."""
    subprocess.run([*ATTNLAB, "start", "too-sharp"], cwd=folder, env=environment, check=True,
                   capture_output=True)  # fmt: skip
    file = folder / "too-sharp.py"
    taken = []
    with subprocess.Popen(
        [*ATTNLAB, "watch"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as watch:  # fmt: skip
        assert watch.stdout is not None
        _read_verdict(watch.stdout.readline)
        for _ in range(runs):
            time.sleep(0.5)
            file.write_text(file.read_text() + "\n")
            begun = time.perf_counter()
            _read_verdict(watch.stdout.readline)
            taken.append(time.perf_counter() - begun)
        watch.terminate()
    return taken


def _read_verdict(readline: Callable[[], str]) -> None:
    while "next: " not in readline():
        pass


def measure_throughput(environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Passing and first failing grades a second, two at once, through two warm workers."""
    code = Path(__file__).with_name("throughput.py")
    said = subprocess.run([sys.executable, str(code)], env=environment, cwd=folder, check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    passing, failing = map(float, said.split())
    return passing, failing


def main() -> None:
    runs = max(5, int(sys.argv[1]) if len(sys.argv) > 1 else 9)
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        folder = Path(place)
        (folder / "plain.py").write_text(PLAIN)
        private = {"ATTNLAB_HOME": place, "XDG_RUNTIME_DIR": place, "ATTNLAB_SERVER": "1"}
        environment = {**os.environ, **private}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody compiles anew for each command
        cold = {**environment, "ATTNLAB_SERVER": "0"}
        grade = [*ATTNLAB, "grade", "too-sharp"]
        trace = [*ATTNLAB, "trace", str(folder / "plain.py"), "--init", "width=8, heads=2"]
        programs = {
            "import torch": (TORCH, environment),
            "import typer, rich, pydantic": (FRONT, environment),
            "grade without a judge": (grade, cold),
            "second grade": (grade, environment),
            "trace of a small file": (trace, environment),
        }
        first = measure(grade, environment)
        measure(grade, environment)
        taken = {name: [measure(*program) for _ in range(1)] for name, program in programs.items()}
        for _ in range(runs - 1):
            for name, program in programs.items():
                taken[name].append(measure(*program))
        saved = measure_watch(folder, environment, runs)
        rates = measure_throughput(environment, folder)
        status = [*ATTNLAB, "server", "status"]
        told = subprocess.run(status, env=environment, capture_output=True, text=True, check=True)
        subprocess.run(
            [*ATTNLAB, "server", "stop"], env=environment, check=True, capture_output=True
        )
    rows = {name: tuple(map(median, zip(*times, strict=True))) for name, times in taken.items()}
    rows["first grade, which starts the judge"] = first
    rows["verdict after a save"] = (median(saved), 0.0)
    show(rows, runs)
    print(f"two at once: {rates[0]:.1f} passing grades/s, {rates[1]:.1f} first failing verdicts/s")
    print(told.stdout.splitlines()[0])


def show(rows: dict[str, tuple[float, ...]], runs: int) -> None:
    wall = rows["import torch"][0]
    table = Table(
        "what", "wall s", "of import torch", "limit", "CPU s", title=f"{runs} runs, medians"
    )
    for name, (seconds, cpu) in rows.items():
        limit = f"{LIMITS[name]:.2f}" if name in LIMITS else ""
        shown = f"{cpu:.3f}" if cpu else ""
        table.add_row(name, f"{seconds:.3f}", f"{seconds / wall:.2f}", limit, shown)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

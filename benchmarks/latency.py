"""How long commands take with the warm judge, against importing torch alone.

    python -m benchmarks.latency [RUNS]

Wall and CPU seconds of whole processes, medians and least of runs in turns, as ratios to
`python -c "import torch"`; and memory, a page that processes share counted once.
The judge that serves them is started for this and stopped at the end. On a machine that others use,
the ratios of what is least tell the most.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
# What a small command line application imports, and what every grade has to import.
FRONTS = ("typer, rich, pydantic", "typer, rich.console")
RATES = ("passing grades", "first failing verdicts", "failing grades with their reason")
CHILDREN = 8  # at once, whose memory is looked at
LIMITS = {"second grade": 0.20, "trace of a small file": 0.25, "verdict after a save": 0.30}


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process, without those of the judge."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), command  # 1: a wrong file was graded
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


def measure_first(grade: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """A grade that finds no judge and starts one."""
    subprocess.run([*ATTNLAB, "server", "stop"], env=environment, check=True, capture_output=True)
    time.sleep(1.0)
    return measure(grade, environment)


def measure_two_slots(environment: dict[str, str], folder: Path) -> list[float]:
    """What throughput.py prints."""
    code = Path(__file__).with_name("throughput.py")
    said = subprocess.run([sys.executable, str(code)], env=environment, cwd=folder, check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    return [float(number) for number in said.split()]


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
            "import torch": lambda: measure(TORCH, environment),
            **{f"import {names}": partial(measure, [sys.executable, "-c", f"import {names}"], cold)
               for names in FRONTS},
            "second grade": lambda: measure(grade, environment),
            "trace of a small file": lambda: measure(trace, environment),
        }  # fmt: skip
        firsts = {
            "grade without a judge": lambda: measure(grade, cold),
            "first grade, which starts the judge": lambda: measure_first(grade, environment),
        }
        for _ in range(2):
            measure(grade, environment)
        taken = in_turns(programs, runs)
        taken["verdict after a save"] = [(s, 0.0) for s in measure_watch(folder, environment, runs)]
        *rates, bare, idle, busy = measure_two_slots(environment, folder)
        taken |= in_turns(firsts, min(runs, 5))
        stop = [*ATTNLAB, "server", "stop"]
        subprocess.run(stop, env=environment, check=True, capture_output=True)
    show(taken, runs)
    torch = median(wall for wall, _ in taken["import torch"])
    for what, rate in zip(RATES, rates, strict=True):
        print(
            f"two at once: {rate:.1f} {what} a second, {rate * torch:.0f} while torch is imported"
        )
    print(f"memory: judge {idle:.0f} MB, {idle / bare:.2f} of bare torch ({bare:.0f} MB); "
          f"with {CHILDREN} commands at once {busy:.0f} MB")  # fmt: skip


def in_turns(
    programs: Mapping[str, Callable[[], tuple[float, float]]], runs: int
) -> dict[str, list[tuple[float, float]]]:
    """Wall and CPU seconds of each, so many times; what slows the machine slows them all."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(runs):
        for name, run in programs.items():
            taken[name].append(run())
    return taken


def show(taken: dict[str, list[tuple[float, float]]], runs: int) -> None:
    table = Table("what", title=f"{runs} runs, seconds: least / median")
    for title in ("wall", "of import torch", "limit", "CPU"):
        table.add_column(title, justify="right")
    torch = [seconds for seconds, _ in taken["import torch"]]
    for name, times in taken.items():
        walls, cpus = zip(*times, strict=True)
        limit = f"{LIMITS[name]:.2f}" if name in LIMITS else ""
        ratios = f"{min(walls) / min(torch):.2f} / {median(walls) / median(torch):.2f}"
        table.add_row(name, _both(walls), ratios, limit, _both(cpus) if any(cpus) else "")
    Console(width=100).print(table)


def _both(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.3f} / {median(seconds):.3f}"


if __name__ == "__main__":
    main()

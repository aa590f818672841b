"""How long `attnlab --help` and `attnlab list` take, against a ten-line Typer app.

    python benchmarks/startup.py [RUNS]

User CPU seconds of whole processes (`os.wait4`), medians over interleaved runs. Aim: at most
1.5 times the small app, and no torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

TEN_LINES = """
import typer
from rich.console import Console
from rich.table import Table
app = typer.Typer()
@app.command()
def main() -> None:
    table = Table("a", "b")
    table.add_row("1", "2")
    Console().print(table)
app()
"""
HEAVY = ("torch", "pydantic")
AIM = 1.5
COMMANDS = {
    "attnlab --help": ["--help"],
    "attnlab --version": ["--version"],
    "attnlab list": ["list"],
    "attnlab list --json": ["list", "--json"],
    "attnlab hint too-sharp": ["hint", "too-sharp"],
}


def user_seconds(command: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # or its destructor would wait for it
    assert process.returncode == 0, command
    return usage.ru_utime


def imported(command: list[str], environment: dict[str, str]) -> str:
    """Which of the heavy modules a command loads."""
    loud = [command[0], "-X", "importtime", *command[1:]]
    said = subprocess.run(loud, env=environment, capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    return ", ".join(name for name in HEAVY if name in names) or "none"


def main() -> None:
    runs = max(7, int(sys.argv[1]) if len(sys.argv) > 1 else 11)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "ATTNLAB_HOME": home}
        small = Path(home, "ten_lines.py")
        small.write_text(TEN_LINES)
        programs = {"ten-line Typer app": [sys.executable, str(small)]}
        for name, words in COMMANDS.items():
            programs[name] = [sys.executable, "-m", "attnlab", *words]
        taken: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(runs):
            for name, command in programs.items():
                taken[name].append(user_seconds(command, environment))
        heavy = {name: imported(command, environment) for name, command in programs.items()}
    show({name: median(times) for name, times in taken.items()}, heavy, runs)


def show(medians: dict[str, float], heavy: dict[str, str], runs: int) -> None:
    base = next(iter(medians.values()))
    table = Table(title=f"user CPU, median of {runs}; aim: at most {AIM} times, no torch")
    for title in ("program", "ms", "ratio", "heavy imports"):
        table.add_column(title, justify="left" if title[0] in "ph" else "right")
    for name, seconds in medians.items():
        table.add_row(name, f"{seconds * 1000:.0f}", f"{seconds / base:.2f}", heavy[name])
    Console().print(table)


if __name__ == "__main__":
    main()

"""CPU of a cold `attnlab grade` over `import torch`. Run: .venv/bin/python benchmarks/grading.py

User CPU of the command with all its processes (worker, judge, child), beside the user CPU of
`python -c "import torch"`, in turns; medians of the times and of the ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

ROUNDS, LIMIT = 7, 1.5
ATTNLAB = [sys.executable, "-m", "attnlab"]
LINES = {
    "import torch": [sys.executable, "-c", "import torch"],
    "attnlab grade (fails)": [*ATTNLAB, "grade", "crash-at-out-proj"],
    "attnlab grade (wrong values)": [*ATTNLAB, "grade", "too-sharp"],
    "attnlab run": [*ATTNLAB, "run", "crash-at-out-proj"],
}


def main() -> int:
    times: dict[str, list[float]] = {name: [] for name in LINES}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(ROUNDS):
            for name, command in LINES.items():
                times[name].append(user_cpu(command, home))
    base = times["import torch"]
    table = Table("command", "user CPU s", "x import torch", "limit")
    worst = 0.0
    for name, found in times.items():
        ratio = statistics.median(a / b for a, b in zip(found, base, strict=True))
        worst = max(worst, ratio if "grade" in name else 0.0)
        limit = f"{LIMIT:g}" if "grade" in name else ""
        table.add_row(name, f"{statistics.median(found):.2f}", f"{ratio:.2f}", limit)
    Console().print(table)
    return int(worst > LIMIT)


def user_cpu(command: list[str], home: str) -> float:
    """User seconds of a command and of all the processes it waited for."""
    before = os.times().children_user
    subprocess.run(
        command,
        env={**os.environ, "ATTNLAB_HOME": home},
        cwd=home,
        capture_output=True,
        check=False,
    )
    return os.times().children_user - before


if __name__ == "__main__":
    sys.exit(main())

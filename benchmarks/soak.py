"""Thousands of grades through one warm judge, a third of them of hostile files.

    python -m benchmarks.soak [GRADES]

Every verdict must be right, and memory, descriptors, processes and temporary files of the judge
the same at the end as after the first tenth. Exits with 1 where something is not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

from attacks import ENDINGS, candidate

from attnlab.catalogue.load import load
from attnlab.records import Code, Limits
from attnlab.target.challenge_job import challenge_job
from attnlab.verdict import make_verdict
from attnlab.worker.client import Worker
from attnlab.worker.warm_start import ask_servers

A_COMMAND = 10  # grades that one connection asks for
SLACK = 1.1  # by which memory may differ between two looks
HOSTILE_SECONDS = 1.0
SLOW = {"10 GB from torch"}  # they take their time on a small machine


def state(folder: Path) -> dict[str, int]:
    """What the judge holds now: kilobytes, descriptors, processes, entries of its folder."""
    server = next(iter(ask_servers("status"))).pid
    family = [server]
    for pid in family:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        family += map(int, children.read_text().split()) if children.exists() else []
    rollups = [Path(f"/proc/{pid}/smaps_rollup") for pid in family]
    lines = [line.split() for r in rollups if r.exists() for line in r.read_text().splitlines()]
    return {
        "memory, kB": sum(int(line[1]) for line in lines if line[0] == "Pss:"),
        "descriptors": sum(1 for p in family if alive(p) for _ in Path(f"/proc/{p}/fd").iterdir()),
        "processes": sum(map(alive, family)),
        "temporary files": sum(1 for _ in folder.iterdir()),
    }


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/fd").exists()


def settle(folder: Path) -> dict[str, int]:
    """The state once the last command's processes have gone."""
    time.sleep(2.0)
    return state(folder)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.environ |= {"XDG_RUNTIME_DIR": place, "TMPDIR": place, "ATTNLAB_SERVER": "1"}
        tempfile.tempdir = place
        wrong, begun, early = grade_all(count, Path(place))
        late = settle(Path(place))
        stop = [sys.executable, "-m", "attnlab", "server", "stop"]
        subprocess.run(stop, check=True, capture_output=True)
    table = Table("what", "after a tenth", "at the end", title=f"{count} grades, {begun:.0f} s")
    for name, was in early.items():
        table.add_row(name, f"{was}", f"{late[name]}")
    Console(width=100).print(table)
    grown = [name for name, was in early.items() if late[name] > was * SLACK]
    print(f"wrong verdicts: {dict(wrong) or 'none'}; grown: {', '.join(grown) or 'nothing'}")
    return 1 if wrong or grown else 0


def grade_all(count: int, folder: Path) -> tuple[Counter[str], float, dict[str, int]]:
    challenge = load().find("too-sharp")
    plain = challenge_job(challenge, Path(challenge.solution), stages=("check",))
    hostile = {
        n: (want, candidate(before=code)) for n, (want, code) in ENDINGS.items() if n not in SLOW
    }
    kinds = [("passed", "right", candidate()), ("failed", "wrong", candidate(right=False))]
    wrong: Counter[str] = Counter()
    early: dict[str, int] = {}
    begun = time.monotonic()
    names = sorted(hostile)
    for first in range(0, count, A_COMMAND):
        with Worker() as worker:
            for number in range(first, min(count, first + A_COMMAND)):
                if number % 3 == 2:
                    name = names[number // 3 % len(names)]
                    want, text = hostile[name]
                    limits = Limits(seconds=HOSTILE_SECONDS)
                else:
                    want, name, text = kinds[number % 3]
                    limits = Limits()
                code = Code(file="candidate.py", text=text, name=challenge.class_name)
                job = replace(plain, candidate=code, limits=limits)
                outcome = make_verdict(challenge, "candidate.py", worker.run_job(job)).outcome
                if outcome not in (want, "timeout" if name in names else want):
                    wrong[f"{name}: {outcome}, not {want}"] += 1
            if not worker.connection.warm or worker.notes:
                wrong[f"connection {first}: {worker.notes or 'cold'}"] += 1
        if not early and first >= count // 10:
            early = settle(folder)
    return wrong, time.monotonic() - begun, early


if __name__ == "__main__":
    sys.exit(main())

"""A class graded by `attnlab batch grade`, beside two judges that do nothing else.

    python -m benchmarks.batch              rate, memory, and how long a finished run takes again
    python -m benchmarks.batch --kill       each process of the run is killed in turn
    python -m benchmarks.batch --count 100  a smaller class
    python -m benchmarks.batch --dask       a scheduler, one and two workers, and one of two killed
    python -m benchmarks.batch --seconds 20 another limit: a busy machine is slow

70 % of the class pass, 25 % fail, 3 % crash and 2 % never end, with a limit of 2 s. Both sides
grade the same files in turns, a part of the class each time, so that other work on the machine
slows both. The rate is that between the first verdict and the last: both start as slowly.
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median
from threading import Thread

from attnlab.batch.grader import ChallengeGrader, conclude
from attnlab.batch.run import plan_run
from attnlab.batch.submissions import find_submissions
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.records import Limits
from attnlab.worker.client import Worker

CHALLENGE = "too-sharp"
SECONDS = "2"
PARTS = 5
ATTNLAB = [sys.executable, "-m", "attnlab"]
SHARES = {"passed": 70, "failed": 25, "crashed": 3, "timeout": 2}
KILL_AFTER = 3  # verdicts


def write_class(folder: Path, count: int) -> dict[str, str]:
    """The outcome that each submission should have, by name."""
    challenge = load().find(CHALLENGE)
    right, wrong = solution_text(challenge), shipped_text(challenge)
    texts = {
        "passed": right,
        "failed": wrong,
        "crashed": f"raise ValueError('not today')\n{right}",
        "timeout": right.replace(
            "def forward(", "def forward(self, *a, **k):\n        while 1: pass\n\n    def other("
        ),
    }
    cycle = [kind for kind, share in SHARES.items() for _ in range(share)]
    expected = {}
    folder.mkdir()
    for number in range(count):
        kind = cycle[number * 37 % len(cycle)]  # mixed, the same each time
        expected[f"s{number:05d}"] = kind
        (folder / f"s{number:05d}.py").write_text(f"{texts[kind]}\n# {number}\n")
    return expected


def judges_alone(folder: Path) -> float:
    """Verdicts a second of two workers that take one job after the other."""
    grader = ChallengeGrader(load().find(CHALLENGE))
    found = find_submissions(str(folder), grader.file, round_=False)
    limits = Limits(seconds=float(os.environ["BATCH_SECONDS"]))
    run = plan_run(grader, limits, 7, len(found))
    tasks = [grader.task(one, run) for one in found]
    todo: SimpleQueue[object] = SimpleQueue()
    for task in tasks:
        todo.put(task)
    ends: list[float] = []

    def work() -> None:
        with Worker() as worker, suppress(Empty):
            while True:
                task = todo.get_nowait()
                conclude(grader, task, worker.run_job(task.job))
                ends.append(time.monotonic())

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (len(ends) - 1) / (max(ends) - min(ends))


def command(folder: Path, *more: str) -> list[str]:
    limit = ["--timeout", os.environ["BATCH_SECONDS"], "--slots", "2"]
    return [*ATTNLAB, "batch", "grade", str(folder), "--challenge", CHALLENGE, *limit, *more]


def batch(folder: Path, run: Path, memory: list[int], *more: str) -> float:
    """Verdicts a second of the command; adds what its processes hold together after each tenth."""
    with subprocess.Popen(
        command(folder, "--run", str(run), *more),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        ends = []
        for line in process.stderr:
            if " of " in line.partition(":")[0] and line[0].isdigit():
                ends.append(time.monotonic())
                if len(ends) % 10 == 0:
                    memory.append(resident(process.pid))
    return (len(ends) - 1) / (ends[-1] - ends[0])


def descendants(pid: int) -> Iterator[int]:
    """The processes below one, nearest first."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from descendants(child)


def resident(pid: int) -> int:
    """MiB that a process and those below it hold by themselves, without what they share."""
    total = 0
    for each in (pid, *descendants(pid)):
        with suppress(OSError):
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total >> 10


def verdicts(run: Path) -> list[tuple[str, str]]:
    """Name and outcome of each row."""
    with sqlite3.connect(run) as file:
        rows = "SELECT name, json_extract(value, '$.verdict.outcome') FROM results WHERE name != ''"
        return list(file.execute(rows))


def compare(count: int, home: Path) -> bool:
    own, graded, memory = [], [], []
    for part in range(PARTS):
        folder = home / f"part-{part}"
        write_class(folder, count // PARTS)
        own.append(judges_alone(folder))
        graded.append(batch(folder, home / f"{part}.run", memory))
        print(f"part {part + 1}: two judges {own[-1]:.2f}/s, batch {graded[-1]:.2f}/s", flush=True)
    ratio = sum(1 / r for r in own) / sum(1 / r for r in graded)
    print(f"{count} submissions: batch reaches {ratio:.2f} of the judges' own rate")
    whole = home / "whole"
    write_class(whole, count)
    memory = []
    rate = batch(whole, home / "whole.run", memory)
    third = len(memory) // 3
    early, late = median(memory[third : 2 * third]), median(memory[-third:])
    print(
        f"all {count} in one run: {rate:.2f}/s; memory of all processes, second third "
        f"{early:.0f} MiB, last {late:.0f} MiB"
    )
    begun = time.monotonic()
    subprocess.run(
        command(whole, "--run", str(home / "whole.run"), "--resume"),
        capture_output=True,
        check=False,
    )
    again = time.monotonic() - begun
    print(f"a finished run again with --resume: {again:.2f} s")
    return ratio >= 0.9 and again <= 1.0


def kill_in_turn(count: int, home: Path) -> bool:
    """Whether each submission has one verdict, the right one, whatever was killed."""
    folder, run = home / "class", home / "class.run"
    expected = write_class(folder, count)
    killed = Counter(command=0, others=0)
    ended = False
    while not ended:
        process = subprocess.Popen(
            command(folder, "--run", str(run), "--resume"), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        seen = 0
        for line in process.stderr:
            seen += line[0].isdigit()
            if seen % KILL_AFTER == 0 and line[0].isdigit():
                kill_next(process.pid, killed)
        ended = process.wait() in (0, 1)
        print(f"  exit status {process.returncode}, {len(verdicts(run))} verdicts", flush=True)
        if process.returncode == 2:
            return False
    found = verdicts(run)
    wrong = [(name, what, expected[name]) for name, what in found if what != expected[name]]
    names = len({name for name, _ in found})
    print(f"{count} submissions; killed: {killed['command']} times the command, "
          f"{killed['others']} times a process of it")  # fmt: skip
    print(f"{len(found)} verdicts on {names} names, {len(wrong)} not as expected {wrong[:3]}")
    return len(found) == names == count and not wrong


def kill_next(pid: int, killed: Counter[str]) -> None:
    """Kill one process of the run, each time another: the command, workers, judges, candidates."""
    tree = [pid, *descendants(pid)]
    victim = tree[killed.total() % len(tree)]
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
        killed["command" if victim == pid else "others"] += 1


# ---------------------------------------------------------------- a cluster on this machine


@contextmanager
def cluster(home: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler in another process, and its workers."""
    known = home / f"scheduler-{time.monotonic_ns()}.json"
    tell = ["--no-dashboard", "--scheduler-file", str(known)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    begun = [subprocess.Popen([*start, "--host", "127.0.0.1", *tell], **quiet)]
    try:
        while not known.exists() or not known.read_text().strip():
            time.sleep(0.2)
        node = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
        node += ["--no-nanny", *tell]
        begun += [subprocess.Popen(node, **quiet) for _ in range(workers)]
        yield json.loads(known.read_text())["address"], begun[1:]
    finally:
        for process in reversed(begun):
            process.kill()
            process.wait()


def on_cluster(count: int, home: Path) -> bool:
    """Rates of one and two workers beside one and two slots here; then a worker is killed."""
    folder = home / "class"
    expected = write_class(folder, count)
    for number in (1, 2):
        local = batch(folder, home / f"local-{number}.run", [], "--slots", str(number))
        with cluster(home, number) as (address, _):
            warm = home / "warm"
            if not warm.exists():
                write_class(warm, 4)
            where = ["--scheduler", address]
            batch(warm, home / f"warm-{number}.run", [], *where)  # each has imported torch
            far = batch(folder, home / f"dask-{number}.run", [], *where)
        print(
            f"{number} here {local:.2f}/s, {number} workers {far:.2f}/s: {far / local:.2f}",
            flush=True,
        )
    run = home / "killed.run"
    with cluster(home, 2) as (address, workers):
        process = subprocess.Popen(
            command(folder, "--run", str(run), "--scheduler", address), stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        for seen, _ in enumerate(process.stderr):
            if seen == count // 3:
                workers[0].kill()
    found = verdicts(run)
    wrong = [(name, what) for name, what in found if what != expected[name]]
    names = len({name for name, _ in found})
    print(f"one of two workers killed: {len(found)} verdicts on {names} names, {len(wrong)} "
          f"not as expected {wrong[:3]}")  # fmt: skip
    return len(found) == names == count


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--seconds", default=SECONDS, help="limit of a submission")
    asked = parser.parse_args()
    os.environ["BATCH_SECONDS"] = asked.seconds
    os.environ["ATTNLAB_SERVER"] = "0"
    with tempfile.TemporaryDirectory() as home:
        os.environ["ATTNLAB_HOME"] = home
        act = kill_in_turn if asked.kill else on_cluster if asked.dask else compare
        return 0 if act(asked.count, Path(home)) else 1


if __name__ == "__main__":
    sys.exit(main())

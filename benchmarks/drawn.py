"""Draw challenges as `attnlab new` does, and look at what was promised of each.

    python -m benchmarks.drawn [COUNT] [--first SEED] [--draw-only]

Each is read as a challenge like any other; its file must be rejected, its edits undone must pass.
Where values alone tell the two apart, they must also differ where no check is used
(`equivalence.py`); a property that one keeps and the other does not is a difference by itself.
Times are those of drawing with a warm judge; on a busy machine `--draw-only` tells the
processor's.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import tempfile
import time

from attnlab.catalogue.load import Catalogue, load
from attnlab.catalogue.texts import shipped_code, solution_text
from attnlab.commands.new import BASES, bases_of
from attnlab.mutation_testing.drawing import VALUES, draw_from_base
from attnlab.mutation_testing.equivalence import first_difference
from attnlab.records import Challenge, Code, Limits, Verdict
from attnlab.target.challenge_job import challenge_job
from attnlab.verdict import make_verdict
from attnlab.worker.client import Worker


def grade(worker: Worker, challenge: Challenge, code: Code, seed: int) -> Verdict:
    limits = Limits(seconds=120.0)  # of the wall: the machine may be busy
    job = challenge_job(challenge, code, stages=("check",), seed=seed, limits=limits)
    return make_verdict(challenge, code.file, worker.run_job(job))


def draw(worker: Worker, shipped: Catalogue, seed: int) -> Challenge | None:
    bases = bases_of(shipped.challenges, "")
    random.Random(seed).shuffle(bases)
    for base in bases[:BASES]:
        if slug := draw_from_base(base, seed, worker):
            return load().find(slug)
    return None


def faults(worker: Worker, challenge: Challenge, seed: int) -> list[str]:
    """What does not hold of a drawn challenge."""
    wrong = shipped_code(challenge)
    right = Code(file="solution.py", text=solution_text(challenge), name=challenge.class_name)
    found = []
    undone = grade(worker, challenge, right, seed + 77)
    if undone.outcome != "passed":
        found.append(f"undoing its edits does not solve it: {undone.message}")
    given = grade(worker, challenge, wrong, seed + 77)
    if given.outcome not in ("failed", "crashed"):
        found.append(f"it is not rejected: {given.message}")
    named = Code(file=wrong.file, text=wrong.text, name=challenge.class_name)
    by_values = set(challenge.expected) <= set(VALUES)
    if by_values and not first_difference(named, right, challenge.contract):
        found.append("it does the same as the solution")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--draw-only", action="store_true", help="for the time of drawing alone")
    asked = parser.parse_args()
    shipped, times, bad, none = load(), list[float](), 0, 0
    by_level: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as home, Worker() as worker:
        os.environ["ATTNLAB_HOME"] = home
        for seed in range(asked.first, asked.first + asked.count):
            begin = time.monotonic()
            challenge = draw(worker, shipped, seed)
            times.append(time.monotonic() - begin)
            if challenge is None:
                none += 1
                continue
            found = [] if asked.draw_only else faults(worker, challenge, seed)
            bad += bool(found)
            by_level[challenge.level] = by_level.get(challenge.level, 0) + 1
            told = "; ".join(found) or "good"
            print(f"{challenge.slug:<40} {times[-1]:6.1f} s  {challenge.category:<10} {told}")
            sys.stdout.flush()
    print(f"{asked.count} drawn, {none} without a bug, {bad} not as promised, levels {by_level}")
    print(f"seconds each: median {statistics.median(times):.1f}, largest {max(times):.1f}")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used) / asked.count
    print(f"processor seconds each, with the start of the judge: {cpu:.2f}")
    return 1 if bad or none else 0


if __name__ == "__main__":
    sys.exit(main())

"""How often `attnlab diff` names the right line and relation: run `python -m benchmarks.diagnosis`.

Items are bugs of the catalogue and generated mutants: of right files (same structure as the
reference) and of their alternatives (another style). Right rewrites must get no diagnosis. A line
counts as named within one line of the change; a relation where it is more than "other".

    python -m benchmarks.diagnosis [--per-file N] [--only NAME] [--misses] [--write PAGE]
"""

from __future__ import annotations

import argparse
import difflib
import random
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from attnlab.candidate.host import LocalHost
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.grading.pipeline import run_job
from attnlab.mutation_testing.operators.base import mutants
from attnlab.records import Challenge, Code, Job, Limits
from attnlab.records.diagnosis import Diagnosis, DiffReport

GENERAL = ("other", "arguments", "other-step")  # relations that name none
CRASHES = ("crashed", "cannot-compare", "same")
GROUPS = ("bugs", "same structure", "other style", "right rewrites")


@dataclass(frozen=True)
class Item:
    """A file beside a reference, and the lines that were changed; none of a right one."""

    group: str
    name: str
    challenge: Challenge
    mine: str
    theirs: str
    lines: frozenset[int]


@dataclass
class Score:
    """The results of a group."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


def items(per_file: int, only: str) -> Iterator[Item]:
    """Bugs as they are shipped; then a fixed choice of mutants of each right file."""
    seen: set[str] = set()
    for challenge in load().challenges:
        if only not in challenge.slug and only not in challenge.base:
            continue
        right = solution_text(challenge)
        if challenge.kind == "debug":
            mine = shipped_text(challenge)
            changed = _changed(right, mine)
            yield Item("bugs", challenge.name, challenge, mine, right, changed)
        if challenge.folder in seen:
            continue
        seen.add(challenge.folder)
        right = Path(challenge.solution).read_text("utf-8")
        for path in (challenge.solution, *challenge.alternatives):
            text = Path(path).read_text("utf-8")
            name = f"{challenge.base or challenge.slug}/{Path(path).name}"
            style = "same structure" if path == challenge.solution else "other style"
            if path != challenge.solution:
                yield Item("right rewrites", name, challenge, text, right, frozenset())
            found = list(mutants(text))
            random.Random(name).shuffle(found)
            for mutant in found[:per_file]:
                said = f"{name}:{mutant.line} {mutant.mutation}: {mutant.after.strip()[:60]}"
                lines = frozenset({mutant.line})
                yield Item(style, said, challenge, mutant.text, right, lines)


def _changed(right: str, mine: str) -> frozenset[int]:
    """The lines of `mine` that differ; where lines are gone, the one after them."""
    a, b = right.splitlines(), mine.splitlines()
    found: set[int] = set()
    for tag, _, _, start, end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            found |= set(range(start + 1, max(end, start + 1) + 1))
    return frozenset(found)


def compare(item: Item) -> DiffReport | None:
    """What `attnlab diff` says; None where the file cannot be run."""
    name = item.challenge.class_name
    job = Job(
        candidate=Code(file="mine.py", text=item.mine, name=name),
        contract=item.challenge.contract,
        reference=Code(file="right.py", text=item.theirs, name=name),
        stages=("diff",),
        limits=Limits(seconds=60),
        seed=1,
    )
    return run_job(job, lambda *_: LocalHost()).diff


def judge(item: Item, report: DiffReport | None) -> str:
    """What became of an item: "named", "line", "wrong", "confirmed wrong", "none" or "left out"."""
    if report is None or report.outcome in CRASHES:
        if not item.lines:
            return "quiet" if report and report.outcome == "same" else "left out"
        return "left out"
    if not item.lines:
        return "alarm" if report.diagnosis else "quiet"
    if not report.diagnosis:
        return "none"
    hits = [d for d in report.diagnosis if _is_near(d, item.lines)]
    if hits:
        return "named" if any(d.relation not in GENERAL for d in hits) else "line"
    return "confirmed wrong" if any(d.confirmed for d in report.diagnosis) else "wrong"


def _is_near(found: Diagnosis, lines: frozenset[int]) -> bool:
    return any(abs(found.line - line) <= 1 for line in lines)


def measure(per_file: int, only: str, misses: bool) -> dict[str, Score]:
    scores = {group: Score() for group in GROUPS}
    for item in items(per_file, only):
        start = time.process_time()
        report = compare(item)
        fate = judge(item, report)
        scores[item.group].counts[fate] += 1
        if report and report.outcome == "different":
            scores[item.group].seconds.append(time.process_time() - start)
        if misses and fate in ("none", "wrong", "confirmed wrong", "alarm"):
            said = [(d.line, d.end_line, d.relation) for d in report.diagnosis] if report else []
            print(f"{fate:16} {item.name}  {sorted(item.lines)} {said}", flush=True)
    return scores


def table(scores: dict[str, Score]) -> str:
    """As Markdown."""
    rows = [
        "| items | compared | line | relation | none | wrong | confirmed, wrong | median s CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group in GROUPS[:-1]:
        counts = scores[group].counts
        many = sum(counts.values()) - counts["left out"]
        if not many:
            continue
        line = counts["named"] + counts["line"]
        took = statistics.median(scores[group].seconds or [0])
        shares = (line, counts["named"], counts["none"], counts["wrong"], counts["confirmed wrong"])
        cells = " | ".join(f"{n} ({100 * n / many:.0f} %)" for n in shares)
        rows.append(f"| {group} | {many} | {cells} | {took:.2f} |")
    right = scores["right rewrites"].counts
    alarms, told = right["alarm"], right["alarm"] + right["quiet"]
    return "\n".join(rows) + f"\n\nRight rewrites: {alarms} of {told} got a diagnosis.\n"


PAGE = """\
# How often `attnlab diff` names the right line

Made by `python -m benchmarks.diagnosis --per-file {per_file} --write PAGE`. Items are the bugs of
the catalogue, and generated mutants of its right files; all of them were there when the rules were
written, so unseen code will do worse. A line counts within one of the change, a relation where it
is more than "other". Items that crash, cannot be compared or give equal outputs are left out.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-file", type=int, default=8, help="mutants of each right file")
    parser.add_argument("--only", default="", help="challenges and bases with this in their name")
    parser.add_argument("--misses", action="store_true", help="print what was not named")
    parser.add_argument("--write", type=Path, help="write the table to this page")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = table(measure(chosen.per_file, chosen.only, chosen.misses))
    print(found)
    if chosen.write:
        text = PAGE.format(per_file=chosen.per_file, table=found.strip())
        chosen.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

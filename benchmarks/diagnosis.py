"""How often `attnlab diff` names the right line and relation: run `python -m benchmarks.diagnosis`.

Items are bugs of the catalogue and generated mutants, each beside the right file that it was made
of (same structure) and beside that file's alternatives (another style). Right rewrites must get no
diagnosis. A line counts as named within one line of the change; a relation where it is more than
"other". A third of the items, chosen by a hash of their names, is kept apart: `--misses` never
shows them.

    python -m benchmarks.diagnosis [--per-file N] [--only NAME] [--misses] [--every N]
                                   [--save FILE] [--seconds N] [--write PAGE]

With `--save` what was measured is kept, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import random
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import torch

from attnlab.candidate.host import LocalHost
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.diagnosis.pool import agreed
from attnlab.grading.pipeline import run_job
from attnlab.mutation_testing.operators.base import Mutant, load_mutations, mutants
from attnlab.records import Challenge, Code, Job, Limits
from attnlab.records.diagnosis import Diagnosis, DiffReport

GENERAL = ("other", "arguments", "other-step")  # relations that name none
CRASHES = ("crashed", "cannot-compare", "same")
RIGHT = "right rewrites"
GROUPS = (
    "bugs, same structure",
    "bugs, other style",
    "mutants, same structure",
    "mutants, other style",
    "bugs, all other styles",
)
COLUMNS = ("line", "relation", "none", "wrong", "confirmed, wrong line", "confirmed, wrong lines")
PARTS = 3  # one of them is kept apart


@dataclass(frozen=True)
class Item:
    """A file beside a reference, and the lines that were changed; none of a right one."""

    group: str
    name: str
    challenge: Challenge
    mine: str
    theirs: tuple[str, ...]
    lines: frozenset[int] = frozenset()

    @property
    def apart(self) -> bool:
        """Whether nobody looks at how it misses."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % PARTS == 0


@dataclass(frozen=True)
class Result:
    """What became of an item.

    `fate` is "named", "line", "wrong", "none", "quiet", "alarm" or "left out"; `misled` says that
    lines are called confirmed none of which is the change or beside it, `off` that the line itself
    is not, whatever lines are shown with it."""

    group: str
    name: str
    apart: bool
    fate: str
    misled: bool
    off: bool
    others: int  # lines that are named besides
    seconds: float


def items(per_file: int, only: str) -> Iterator[Item]:
    """Bugs as they are shipped; a fixed choice of mutants of each right file; the right files."""
    seen: set[str] = set()
    for challenge in _challenges().values():
        if only not in challenge.slug and only not in challenge.base:
            continue
        alternatives = {Path(p).name: Path(p).read_text("utf-8") for p in challenge.alternatives}
        if challenge.kind == "debug":
            right, mine = solution_text(challenge), shipped_text(challenge)
            changed = _changed(right, mine)
            yield Item(GROUPS[0], challenge.name, challenge, mine, (right,), changed)
            for name, text in alternatives.items():
                said = f"{challenge.name} beside {name}"
                yield Item(GROUPS[1], said, challenge, mine, (text,), changed)
            if len(alternatives) > 1:
                said = f"{challenge.name} beside all"
                yield Item(GROUPS[4], said, challenge, mine, tuple(alternatives.values()), changed)
        if challenge.folder not in seen:
            seen.add(challenge.folder)
            yield from _mutants_and_rewrites(challenge, alternatives, per_file)


def _mutants_and_rewrites(
    challenge: Challenge, alternatives: dict[str, str], per_file: int
) -> Iterator[Item]:
    right = Path(challenge.solution).read_text("utf-8")
    for file, text in {"solution.py": right, **alternatives}.items():
        name = f"{challenge.base or challenge.slug}/{file}"
        if text != right:
            yield Item(RIGHT, name, challenge, text, (right,))
            yield Item(RIGHT, f"solution.py beside {name}", challenge, right, (text,))
        for mutant in _choice(text, name, per_file):
            said = f"{name}:{mutant.line} {mutant.mutation}: {mutant.after.strip()[:60]}"
            lines = frozenset({mutant.line})
            yield Item(GROUPS[2], said, challenge, mutant.text, (text,), lines)
            if text != right:
                said = f"{said} beside solution.py"
                yield Item(GROUPS[3], said, challenge, mutant.text, (right,), lines)


def _choice(text: str, name: str, many: int) -> list[Mutant]:
    """Some mutants of a text, the same each time; of few mutations, since making all takes long."""
    dice, found = random.Random(name), list[Mutant]()
    ids = [mutation.id for mutation in load_mutations()]
    dice.shuffle(ids)
    while ids and len(found) < many:
        found += mutants(text, *(ids.pop() for _ in range(min(8, len(ids)))))
    dice.shuffle(found)
    return found[:many]


def _changed(right: str, mine: str) -> frozenset[int]:
    """The lines of `mine` that differ; where lines are gone, the one after them."""
    a, b = right.splitlines(), mine.splitlines()
    found: set[int] = set()
    for tag, _, _, start, end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            found |= set(range(start + 1, max(end, start + 1) + 1))
    return frozenset(found)


def compare(item: Item) -> DiffReport | None:
    """What `attnlab diff` says, or what several of them agree on; None where the file cannot be
    run."""
    reports = [_compare(item.challenge.slug, item.mine, text) for text in item.theirs]
    different = [r for r in reports if r is not None and r.outcome == "different"]
    if len(reports) == 1 or not different:
        return reports[0]
    return replace(different[0], diagnosis=agreed([r.diagnosis for r in different]))


@lru_cache(maxsize=16)  # those beside one style are asked again for those beside all
def _compare(slug: str, mine: str, theirs: str) -> DiffReport | None:
    challenge = _challenges()[slug]
    name = challenge.class_name
    job = Job(
        candidate=Code(file="mine.py", text=mine, name=name),
        contract=challenge.contract,
        reference=Code(file="right.py", text=theirs, name=name),
        stages=("diff",),
        limits=Limits(seconds=60),
        seed=1,
    )
    return run_job(job, lambda *_: LocalHost()).diff


@cache
def _challenges() -> dict[str, Challenge]:
    return {challenge.slug: challenge for challenge in load().challenges}


def judge(item: Item, report: DiffReport | None) -> str:
    """The fate of an item, as `Result` has it."""
    if report is None or report.outcome in CRASHES:
        same = not item.lines and report is not None and report.outcome == "same"
        return "quiet" if same else "left out"
    if not item.lines:
        return "alarm" if report.diagnosis else "quiet"
    if not report.diagnosis:
        return "none"
    hits = [d for d in report.diagnosis if _is_near(d, item.lines)]
    if hits:
        return "named" if any(d.relation not in GENERAL for d in hits) else "line"
    return "wrong"


def _is_near(found: Diagnosis, lines: frozenset[int]) -> bool:
    return any(abs(found.line - line) <= 1 for line in lines)


def _is_far(found: Diagnosis, lines: frozenset[int]) -> bool:
    """Whether the change is not even among the lines that are shown, as those of a backward."""
    within = any(found.line <= line <= found.end_line for line in lines)
    return not (within or _is_near(found, lines))


def measure(item: Item, misses: bool) -> Result:
    """Compare and judge; a miss is shown if it is not kept apart."""
    start = time.process_time()
    report = compare(item)
    took = time.process_time() - start
    fate = judge(item, report)
    far = [d for d in report.diagnosis if _is_far(d, item.lines)] if report else []
    misled = any(d.confirmed for d in far)
    sure = [d for d in report.diagnosis if d.confirmed] if report else []
    off = bool(item.lines) and any(not _is_near(d, item.lines) for d in sure)
    if misses and not item.apart and (fate in ("none", "wrong", "alarm", "line") or misled or off):
        said = [(d.line, d.relation, d.confirmed) for d in report.diagnosis] if report else []
        print(f"{fate:6} {item.name}  {sorted(item.lines)} {said}", flush=True)
    return Result(item.group, item.name, item.apart, fate, misled, off, len(far), took)


def run(chosen: argparse.Namespace) -> tuple[list[Result], int]:
    """The results of all items, or of those that there was time for; and how many there are."""
    known = {}
    if chosen.save and chosen.save.exists():
        lines = chosen.save.read_text("utf-8").splitlines()
        known = {r.name: r for r in (Result(**json.loads(line)) for line in lines)}
    start, results, many = time.monotonic(), [], 0
    for index, item in enumerate(items(chosen.per_file, chosen.only)):
        if index % chosen.every != chosen.offset:
            continue
        many += 1
        if item.name not in known and time.monotonic() - start < chosen.seconds:
            known[item.name] = measure(item, chosen.misses)
            if chosen.save:
                with chosen.save.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(known[item.name])) + "\n")
        if item.name in known:
            results.append(known[item.name])
    return results, many


def table(results: list[Result]) -> str:
    """As Markdown."""
    rows = [
        f"| items | compared | {' | '.join(COLUMNS)} | median s CPU |",
        "|---" * (len(COLUMNS) + 3) + "|",
    ]
    for group in GROUPS:
        told = [r for r in results if r.group == group and r.fate != "left out"]
        if not told:
            continue
        fates = [r.fate for r in told]
        line = fates.count("named") + fates.count("line")
        sure = sum(r.off for r in told), sum(r.misled for r in told)
        shares = (line, fates.count("named"), fates.count("none"), fates.count("wrong"), *sure)
        cells = " | ".join(f"{n} ({100 * n / len(told):.1f} %)" for n in shares)
        took = statistics.median(r.seconds for r in told)
        rows.append(f"| {group} | {len(told)} | {cells} | {took:.2f} |")
    right = [r.fate for r in results if r.group == RIGHT and r.fate != "left out"]
    return "\n".join(rows) + (
        f"\n\nRight rewrites: {right.count('alarm')} of {len(right)} got a diagnosis.\n"
    )


PAGE = """\
# How often `attnlab diff` names the right line

Made by `python -m benchmarks.diagnosis --per-file {per_file} --every {every} --offset {offset}
--write PAGE`. Items
are the bugs of the catalogue, and generated mutants of its right files, beside the right file that
they were made of and beside right files in another style. A line counts within one of the change, a
relation where it is more than "other". "Confirmed, wrong line" are items with a line that is called
confirmed and is neither the change nor beside it; "confirmed, wrong lines" those where what is
shown from that line on, as a backward, does not hold the change either. Of {many} items, {chosen},
{measured} were measured; {left} of these crash, cannot be compared or give equal outputs,
and are left out. On the same structure the two files differ in a few lines only, and only such
lines are named there; what the values alone tell is seen in the other style. "All other styles" is
what the diagnoses beside each of them agree on, as `attnlab grade --reveal` has it.

## Items that the rules were written with

{opened}

## Items kept apart

A third of the items, chosen by a hash of their names; nobody has seen how they miss.

{apart}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-file", type=int, default=8, help="mutants of each right file")
    parser.add_argument("--only", default="", help="challenges and bases with this in their name")
    parser.add_argument("--misses", action="store_true", help="print what was not named")
    parser.add_argument("--every", type=int, default=1, help="measure only each N-th item")
    parser.add_argument("--offset", type=int, default=0, help="which of them is the first")
    parser.add_argument("--save", type=Path, help="keep the results there, and go on from them")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after that")
    parser.add_argument("--write", type=Path, help="write the table to this page")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results, many = run(chosen)
    opened = table([r for r in results if not r.apart])
    apart = table([r for r in results if r.apart])
    print(f"{opened}\nKept apart:\n\n{apart}")
    if chosen.write:
        text = PAGE.format(
            per_file=chosen.per_file,
            every=chosen.every,
            offset=chosen.offset,
            left=sum(r.fate == "left out" for r in results),
            measured=len(results),
            chosen=f"each {chosen.every}th of the catalogue"
            if chosen.every > 1
            else "in its order",
            many=many,
            opened=opened.strip(),
            apart=apart.strip(),
        )
        page = chosen.write.read_text("utf-8") if chosen.write.exists() else ""
        _, head, gradients = page.partition("\n## Gradients\n")  # which another script writes
        chosen.write.write_text(text + head + gradients, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Draw many questions of `attnlab quiz`, and look whether each has exactly one right answer.

    python -m benchmarks.quiz [--count N] [--kind KIND]   N of each kind that is drawn by seed
    python -m benchmarks.quiz --effects                   grade and run every bug that is not known,
                                                          and write what comes of it

Of the kinds about bugs, every bug and decoy of the catalogue is drawn once. Exits with 1 where a
question has no right answer, or several, or a wrong one of its choices is true as well: causes of
other bugs that the program has, properties that a fresh grade of a sample sees broken, kinds that a
bug may be called too, reasons of which the claims of `why_claims.toml` hold.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import torch

from attnlab.catalogue.load import load
from attnlab.errors import AttnlabError
from attnlab.mutation_testing.drawing import unique_edit
from attnlab.mutation_testing.operators.base import category_of, drawn_mutants
from attnlab.questions import effects, kept, readable
from attnlab.questions.base import LETTERS, Kind, Part, Runner, draw_parts, kinds, number_parts
from attnlab.questions.effects import Mutated
from attnlab.questions.kinds import effect, incident, numbers, spot, why
from attnlab.questions.kinds.effect import changed_lines
from attnlab.questions.kinds.incident import split_cause
from attnlab.questions.material import Material, Patched, Piece, files_of
from attnlab.records import to_json
from attnlab.records.program import ProgramJob, ProgramReport, TrainingRun
from attnlab.records.trace import Op
from attnlab.worker.client import Worker

DRAWN = 10_000
RERUN = 20  # bugs that are graded anew
LOSS_DIGITS, VALUE_DIGITS = 5, 4
TRIES = 9  # of what is not drawn each time
POOL = 8  # generated bugs of a right file
KINDS_DRAWN = 20  # questions of what kind a bug is, of each bug
# What hints call a kind, where it is not by its name.
CALLED = {"normalisation": "normali", "positions": "position", "embedding": "embed"}
CLAIMS = Path(__file__).with_name("why_claims.toml")


def problems(parts: Sequence[Part]) -> Iterator[str]:
    """What is wrong with a question and with what follows it."""
    for part in parts:
        name = part.question.id
        if part.question.choices:
            yield from _choice_problems(part, name)
        elif part.question.kind == "numbers":
            yield from _number_problems(part, name)
        elif part.question.kind == "shapes":
            yield from _shape_problems(part, name)
        elif part.question.kind == "spot":
            yield from _line_problems(part, name)


def _marks(part: Part, answers: Sequence[str]) -> list[str]:
    return [part.judge(answer).mark for answer in answers]


def _choice_problems(part: Part, name: str) -> Iterator[str]:
    choices = part.question.choices
    by_letter = _marks(part, LETTERS[: len(choices)])
    if Counter(by_letter)["right"] != 1:
        yield f"{name}: {by_letter.count('right')} of its choices are right"
    if by_letter != _marks(part, choices):
        yield f"{name}: a choice by its words is judged otherwise than by its letter"
    if len(choices) < 2 or len({c.lower() for c in choices}) != len(choices):
        yield f"{name}: its choices are {choices}"


def _number_problems(part: Part, name: str) -> Iterator[str]:
    value = numbers.read_number(part.right.partition(" (")[0])
    near, far = (value * 1.04, value / 1.04), (value * 1.06, value / 1.06, -value, value * 1000)
    if _marks(part, [repr(v) for v in (value, *near)]) != ["right"] * 3:
        yield f"{name}: its right answer {part.right} is not taken"
    if "right" in _marks(part, [repr(v) for v in far]):
        yield f"{name}: a number that is 6 % off is taken"


def _shape_problems(part: Part, name: str) -> Iterator[str]:
    row = part.rows[-1]
    sizes = [str(n) for n in row.shape]
    names = " ".join(row.axes)
    if _marks(part, [" ".join(sizes), names]) != ["right", "right"]:
        yield f"{name}: {names} = {sizes} is not taken"
    for other in set(permutations(sizes)) - {tuple(sizes)} if len(sizes) < 6 else ():
        if _marks(part, [" ".join(other)]) != ["partly"]:
            yield f"{name}: {other} in place of {sizes} does not count half"
    for place in range(len(sizes)):
        wrong = [str(int(n) + 1) if i == place else n for i, n in enumerate(sizes)]
        if "right" in _marks(part, [" ".join(wrong), " ".join([*sizes, "1"])]):
            yield f"{name}: {wrong} is taken for {sizes}"


def _line_problems(part: Part, name: str) -> Iterator[str]:
    first = part.question.first
    lines = [str(first + n) for n in range(part.question.code.count("\n") + 1)]
    marks = _marks(part, [*lines, "nothing"])
    if "right" not in marks or (marks[-1] == "right" and marks.count("right") > 1):
        yield f"{name}: no line is right, or nothing and a line"


# ---------------------------------------------------------------- what is no answer


def true_causes(one: Patched, causes: Sequence[str]) -> Iterator[str]:
    """Causes offered for a broken program that hold of it besides its own: those of bugs whose
    place is not as in the right program."""
    assert one.program is not None
    files = files_of(one)
    by_cause = {split_cause(bug.why)[0]: bug for bug in one.program.bugs}
    for cause in causes:
        bug = by_cause[cause]
        if bug.id != one.id and not all(edit.old in files[edit.file] for edit in bug.edits):
            yield f"{effects.key(one)}: also true: {cause}"


def true_properties(one: Patched, parts: Sequence[Part], runner: Runner) -> Iterator[str]:
    """What a fresh grade of a bug says otherwise than the question about it does: the worst that
    comes of it, or a property that is offered as kept and fails."""
    found = effects.measure(one, runner)
    if parts[0].right != effects.EFFECTS.get(found.worst):
        yield f"{effects.key(one)}: {parts[0].right}, but now it is {found.worst}"
    for part in parts[1:]:
        if failing := {*part.question.choices} - {part.right} & {*found.seen}:
            yield f"{effects.key(one)}: also seen by {', '.join(sorted(failing))}"


def true_kinds(bugs: Sequence[Patched], seeds: int) -> Iterator[str]:
    """Kinds offered of a bug that hold of it: named in its hints, or those of the same change in
    another file."""
    same = defaultdict[tuple[str, ...], set[str]](set)
    for one in bugs:
        same[_change(one)].add(one.category)
    for one in bugs:
        drawn = (spot.ask_category(one, random.Random(seed)) for seed in range(seeds))
        offered = {kind for part in drawn if part for kind in part.question.choices}
        bug = one.program.patches[one.id] if one.program else one.challenge
        hints = " ".join(bug.hints).lower() if bug else ""
        named = {kind for kind in offered if CALLED.get(kind, kind) in hints}
        for kind in sorted((offered & same[_change(one)] | named) - {one.category}):
            yield f"{effects.key(one)}: of {one.category}, and may be called one of {kind}"


def _change(one: Patched) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for _, line in changed_lines(one))


def true_reasons(entry: Mapping[str, Any], claims: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What the claims say otherwise than a question about reasons: an expression for each choice,
    the right one first, is true of that one alone. Where a fact cannot be computed, a sentence that
    begins with "no:" says for each wrong choice why it is false."""
    found = claims.get(entry["id"], ())
    if len(found) != 1 + len(entry["wrong"]):
        yield f"why/{entry['id']}: {len(found)} claims for {1 + len(entry['wrong'])} choices"
        return
    choices = zip(found, (entry["right"], *entry["wrong"]), strict=True)
    for number, (claim, text) in enumerate(choices):
        is_true = not claim.startswith("no:") and claim_holds(claim)
        if is_true != (number == 0):
            yield f"why/{entry['id']}: {'also true' if is_true else 'not true'}: {text}"


def claim_holds(claim: str) -> bool:
    """Whether an expression over torch is true; what it raises is a claim, too."""
    names = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "math": math}
    torch.manual_seed(0)
    try:
        return claim.startswith("fact:") or bool(eval(claim, names | vars(torch)))
    except (RuntimeError, AttributeError):
        return False


def why_claims() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads(CLAIMS.read_text("utf-8"))
    return found


def check_distractors(count: int, runner: Runner) -> int:
    """Look at the causes of all incidents, the kinds of all bugs, all reasons, and at a sample of
    so many effects that are run anew."""
    catalogue, dice = load(), random.Random(time.time())
    runs = TrainingRun(
        steps=1, losses=(1.0,), expected_start=1.0, seconds=0.0, evidence=dict.fromkeys("abc", "1")
    )
    canned = Runner(runner.run_job, lambda _: ProgramReport(outcome="passed", run=runs))
    problems, looked = list[str](), 0
    for one in Material(catalogue).all("program"):
        assert isinstance(one, Patched)
        for part in incident.draw(one, dice, canned) or ():
            problems += true_causes(one, part.question.choices)
            looked += 1
    known = [one for one in Material(catalogue).all("patched") if isinstance(one, Patched)]
    bugs = [one for one in known if one.id and not one.decoy and len(one.files) == 1]
    problems += true_kinds(bugs, KINDS_DRAWN)
    claims = why_claims()
    problems += (each for entry in why.entries() for each in true_reasons(entry, claims))
    looked += len(bugs) + len(why.entries())
    for one in dice.sample([one for one in known if one.id and one.challenge], count):
        if parts := effect.draw(one, dice, runner):
            problems += true_properties(one, parts, runner)
            looked += 1
    print(*problems, f"distractors of {looked} questions: {len(problems)} true", sep="\n")
    return len(problems)


# ---------------------------------------------------------------- what is drawn


def drawn(kind: Kind, count: int, runner: Runner) -> Iterator[list[Part]]:
    """So many by their seeds; of the kinds about bugs, one for every bug and decoy."""
    catalogue = load()
    if kind.material not in ("patched", "program"):
        yield from (draw_parts(kind, seed, catalogue, runner) for seed in range(count))
        return
    for number, one in enumerate(Material(catalogue).all(kind.material)):
        dice = random.Random(f"{kind.id} {number}")
        if parts := next(filter(None, (kind.draw(one, dice, runner) for _ in range(TRIES))), None):
            yield number_parts(kind.id, number, parts)


def check(kind: Kind, count: int, runner: Runner) -> int:
    """Print what is wrong, and how many were drawn."""
    begun, asked, wrong = time.monotonic(), 0, 0
    bugs = set()
    for parts in drawn(kind, count, runner):
        asked += len(parts)
        bugs |= {(part.base, part.bug) for part in parts if part.bug}
        for problem in problems(parts):
            wrong += 1
            print(problem)
    about = f", {len(bugs)} bugs and decoys" if bugs else ""
    seconds = time.monotonic() - begun
    print(f"{kind.id:<10}{asked:>7} questions{about}: {wrong} wrong ({seconds:.0f} s)")
    return wrong


def write_effects(runner: Runner) -> None:
    """Grade every bug and decoy that the file lacks, and keep what comes of it."""
    found = kept.all_entries(effects.FILE, effects.Effect)
    for one in Material(load()).all("patched"):
        assert isinstance(one, Patched)
        if one.id and effects.key(one) not in found:
            try:
                found[effects.key(one)] = effects.measure(one, runner)
            except AttnlabError as error:
                print(f"{effects.key(one)}: {error}")
            effects.FILE.write_text(lines_text(found), "utf-8")


def drawn_mutants_of(one: Patched, runner: Runner) -> list[Mutated]:
    """Some bugs of a right file that are to be seen."""
    found = list[Mutated]()
    for made in islice(drawn_mutants(one.right, random.Random(one.base)), 4 * POOL):
        wrong = replace(one, text=made.text, category=category_of(made.mutation))
        edit = unique_edit(one.right, made.text)
        if len(found) < POOL and edit and len([*changed_lines(wrong)]) <= effect.LONGEST:
            with suppress(AttnlabError):
                seen = effects.measure(wrong, runner)
                if seen.worst not in ("", "nothing"):  # that all checks pass is no proof
                    about = {"mutation": made.mutation, "category": wrong.category}
                    found.append(Mutated(**about, edit=edit, effect=seen))
    return found


def write_mutants(runner: Runner) -> None:
    """Draw bugs of the right files that have changed, or are new."""
    known = kept.all_entries(effects.MUTANTS, tuple[Mutated, ...])
    rights = [one for one in Material(load()).all("patched") if isinstance(one, Patched)]
    by_key = {effects.mutants_key(one): one for one in rights if one.challenge and not one.id}
    found = {key: known.get(key) or drawn_mutants_of(one, runner) for key, one in by_key.items()}
    effects.MUTANTS.write_text(lines_text(found), "utf-8")


def incident_jobs() -> Iterator[ProgramJob]:
    """Every run of which an incident tells, those of right programs among them."""
    for one in Material(load()).all("program"):
        assert isinstance(one, Patched)
        if one.effect not in incident.SILENT:
            yield from map(incident.evidence_job, (one, replace(one, id="")))


def write_runs(runner: Runner) -> None:
    """Run every program that the file lacks, and keep those alone that are told of."""
    known, found = kept.all_entries(kept.RUNS, TrainingRun), dict[str, TrainingRun]()
    for name, job in {kept.run_key(job): job for job in incident_jobs()}.items():
        run = known.get(name) or runner.evidence(job)
        if run is not None:
            losses = tuple(round(loss, LOSS_DIGITS) for loss in run.losses)
            found[name] = replace(run, losses=losses, seconds=0.0)
            kept.RUNS.write_text(lines_text(found), "utf-8")


def traced_lines(runner: Runner) -> dict[str, object]:
    """The entry of each piece, without what is as it is unless it is said."""
    pieces = [one for one in Material(load()).all("piece") if isinstance(one, Piece)]
    return {readable.lines_key(one): lean(readable.lines_of(one, runner)) for one in pieces}


def lean(value: Any) -> Any:
    """A record as JSON holds it, without defaults and places, and with few digits."""
    if isinstance(value, Op):
        value = replace(value, file="", source="")
    if is_dataclass(value):
        said = {f.name: getattr(value, f.name) for f in fields(value)}
        changed = {f.name for f in fields(value) if said[f.name] != f.default}
        return {name: lean(each) for name, each in said.items() if name in changed}
    if isinstance(value, tuple):
        return [lean(each) for each in value]
    return float(f"{value:.{VALUE_DIGITS}g}") if isinstance(value, float) else value


def lines_text(found: Mapping[str, object]) -> str:
    """A file of what was found, one bug on a line."""
    lines = (f"{to_json(name)}: {to_json(each)}" for name, each in sorted(found.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=DRAWN)
    parser.add_argument("--kind", default="")
    parser.add_argument("--effects", action="store_true")
    given = parser.parse_args()
    with Worker() as worker:
        runner = Runner(worker.run_job, worker.run_program)
        if given.effects:
            write_effects(runner)
            write_runs(runner)
            write_mutants(runner)
            readable.FILE.write_text(lines_text(traced_lines(runner)), "utf-8")
            return 0
        chosen = [kind for name, kind in kinds().items() if given.kind in ("", name)]
        wrong = sum(check(kind, given.count, runner) for kind in chosen)
        return int(wrong + check_distractors(RERUN, runner) > 0)


if __name__ == "__main__":
    sys.exit(main())

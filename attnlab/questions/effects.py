"""What comes of a bug: the worst that is seen of it, and which checks see it.

What comes of the shipped bugs stands in `effects.json`, and what comes of some generated ones in
`mutants.json`; that of others is found by a grade on the spot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attnlab.errors import AttnlabError
from attnlab.grading.program_sources import unit_code
from attnlab.questions.base import Runner
from attnlab.questions.kept import find_entry, short_digest
from attnlab.questions.material import Patched, files_of
from attnlab.records import Code, Job, Limits, record
from attnlab.records.check_results import CheckResult
from attnlab.records.program import PartResult, ProgramJob, Unit
from attnlab.target.challenge_job import challenge_job

FILE, MUTANTS = (Path(__file__).with_name(f"{name}.json") for name in ("effects", "mutants"))
# By precedence: where several come of it, the first one is asked for.
EFFECTS = {
    "crash": "it crashes",
    "nan": "NaN or infinities come out",
    "leak": "something is seen that must not be: the answer, the future, padding, another sample",
    "values": "wrong values come out",
    "training": "values are right, but it trains worse or not at all",
    "nothing": "nothing: it does the same",
}
LEAKS = {"causality", "masked-keys-ignored", "batch-independence", "packed-isolation"}
REPEATED = "no-hidden-state"  # what differs from call to call fails every comparison
PADDING, ROTATED = "Masked padding changes nothing", "rotating the batch"
VALUES = {"matches-reference", "formula-match"}
TRAINING = {"gradients-match", "gradcheck", "dropout", "train-mode"}
# Wrong values of these may be a leak that no check looks for: of a window, of another beam.
UNSURE = {"mask", "generation"}
SHOWN = 6  # checks that are kept of those that fail, and of those that pass
# Folders before a place in a package, and the name of the check that a message is of.
INTERNAL = re.compile(r"/\S*/(?=(attnlab|torch)/)|^[a-z]+(?:-[a-z]+)+: ")
NOT_FINITE = re.compile(r"\bNaN\b|(?<!-)\binf\b")
LOOPS = {"training", "evaluation", "generation", "prediction"}  # parts that are no units


@record
class Effect:
    """What comes of a bug; nothing where the question of it makes no sense, as for memory."""

    worst: str  # a key of EFFECTS, or ""
    seen: tuple[str, ...]  # titles of the checks or parts that fail, the plainest first
    passed: tuple[str, ...]  # titles of some that do not
    message: str = ""  # of the first that fails


def key(one: Patched) -> str:
    return f"{one.base}/{one.id}"


@record
class Mutated:
    """A generated bug in a right file."""

    mutation: str
    category: str
    edit: tuple[str, str]  # lines that stand once in the right text, and what replaces them
    effect: Effect


def known_mutants(one: Patched) -> tuple[Mutated, ...]:
    """Some of its right file; none of one that is not shipped, or has changed since."""
    return find_entry(MUTANTS, mutants_key(one), tuple[Mutated, ...]) or ()


def mutants_key(one: Patched) -> str:
    return f"{one.base} {short_digest(one.right)}"


def effect_of(one: Patched, runner: Runner) -> Effect | None:
    """What comes of a patch; None where it is not known and cannot be found out."""
    if found := find_entry(FILE, key(one), Effect):
        return found
    try:
        return runner.once((one.base, one.text), Effect, lambda: measure(one, runner))
    except AttnlabError:
        return None


def measure(one: Patched, runner: Runner) -> Effect:
    """Grade the patched file, and say what was seen."""
    if one.program:
        return _of_program(one, runner)
    assert one.challenge is not None
    code = Code(file=one.file, text=one.text, path=one.challenge.solution)
    report = runner.run_job(challenge_job(one.challenge, code, seed=0))
    failed = [check for check in report.checks if check.outcome == "failed"]
    crash = report.trace.crash if report.trace else None
    message = f"{crash.error}: {crash.message}" if crash else report.message
    crashed = crash or report.outcome != "ok" or any(c.reason == "crashed" for c in report.checks)
    return Effect(
        worst="crash" if crashed else _worst(failed, one.category),
        seen=tuple(check.title for check in failed[:SHOWN]),
        passed=_some([check.title for check in report.checks if check.outcome == "passed"]),
        message=message or next((check.message for check in failed), ""),
    )


def _some(titles: list[str]) -> tuple[str, ...]:
    """A few of them, from all over the list."""
    return tuple(titles[:: len(titles) // SHOWN + 1])


def _worst(failed: Sequence[CheckResult], category: str) -> str:
    """By the checks that fail; "" where they do not say what a person would see."""
    ids = {check.id for check in failed}
    if any(NOT_FINITE.search(check.message) for check in failed if check.id not in TRAINING):
        return "nan"
    leaks = [check for check in failed if check.id in LEAKS]
    if leaks and REPEATED not in ids:
        return "leak" if any(map(_is_sure, leaks)) else ""
    if VALUES & ids:
        return "" if category in UNSURE else "values"
    if TRAINING & ids:
        return "training"
    return "" if ids else "nothing"


def _is_sure(check: CheckResult) -> bool:
    """Whether something was seen that must not be: padding also moves positions, and a rotated
    batch may only be numbered otherwise."""
    return check.title != PADDING and not check.message.startswith(ROTATED)


def _of_program(one: Patched, runner: Runner) -> Effect:
    assert one.program is not None
    job = ProgramJob(
        program=one.program,
        files=files_of(one),
        label="",
        stages=("grade",),
        limits=Limits(seconds=60.0),
    )
    report = runner.run_program(job)
    failed = [part for part in report.parts if part.outcome == "failed"]
    crashed = one.effect == "crash" or any(part.reason == "crashed" for part in failed)
    return Effect(
        worst="nothing" if one.decoy else "crash" if crashed else _worst_part(one, failed, runner),
        seen=tuple(part.title for part in failed),
        passed=_some([part.title for part in report.parts if part.outcome == "passed"]),
        message=INTERNAL.sub("", next((part.message for part in failed), report.message)),
    )


def _worst_part(one: Patched, failed: Sequence[PartResult], runner: Runner) -> str:
    units = {part.id: part for part in failed if part.id not in LOOPS}
    checks = [c for part in units.values() for c in part.checks if c.outcome == "failed"]
    assert one.program is not None
    for unit in one.program.units if one.effect != "leak" else ():
        if unit.id in units:
            checks += _leaks(one, unit, runner)
    if one.effect == "leak":
        return "leak"
    if units:  # one without a failed check has other parameters: nothing that a call shows
        return _worst(checks, one.category) if checks else ""
    if {part.id for part in failed} & LOOPS - {"training"}:
        return "" if one.category in UNSURE else "values"
    return "training" if one.effect == "slow learning" else ""


def _leaks(one: Patched, unit: Unit, runner: Runner) -> list[CheckResult]:
    """The checks for leaks that a unit fails."""
    assert one.program is not None
    code, right = (unit_code(unit, files, "") for files in (files_of(one), one.program.files))
    job = Job(
        candidate=code,
        contract=unit.contract,
        reference=right,
        stages=("check",),
        only=(*sorted(LEAKS), REPEATED),
        seed=0,
    )
    return [check for check in runner.run_job(job).checks if check.outcome == "failed"]

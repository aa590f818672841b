"""Find the cause of an incident, asking for one measurement at a time.

A symptom, and the log of a broken program that really ran. Five measurements may be asked for, by
their numbers; each tells what that run gave. Then name the cause. What counts is the cause, and how
few measurements it took.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from attnlab.errors import AttnlabError
from attnlab.questions.base import Part, Runner, about, choice
from attnlab.questions.material import Patched, files_of
from attnlab.records import Limits
from attnlab.records.program import ProgramBug, ProgramJob, TrainingRun

MATERIAL = "program"
LOGGED, LONGEST, SHOWN = 8, 240, 70  # losses of the log; characters of a cause, of a sample
FEWEST = 3  # measurements that there must be to ask for
# Letters by which words are taken for the same, and what is a word: short ones if they are terms.
STEM, WORD = 5, re.compile(r"[A-Za-z]{5,}|\b(?:head|mask|norm|rate|warm)(?=s?\b)")
FEW = 4  # words of a sentence that says no more than a loss does
SENTENCE = re.compile(r"(?<=[.!?])\s+")
SILENT = ("crash", "memory")  # effects that a log tells at once, or never


def draw(one: Patched, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    others = list(_other_causes(one, dice))
    if one.effect in SILENT or len(others) < 2:
        return None
    try:
        run = runner.evidence(evidence_job(one))
    except AttnlabError:
        return None
    if run is None or len(run.evidence) < FEWEST:
        return None
    cause, more = split_cause(one.why)
    seen = _without_clues(one.symptom, cause, others[:3])
    if len(seen) < len(_sentences(one.symptom)):
        seen = [sentence for sentence in seen if len(sentence.split()) > FEW]
        seen += _compared(run, runner.evidence(evidence_job(replace(one, id=""))))
    prompt = " ".join([*seen, "What is the cause?"])
    question, right, judge = choice(dice, cause, others[:3], prompt)
    names = tuple(run.evidence)
    assert one.program is not None
    why = f"{more}\n\n{one.program.patches[one.id].find}".strip()
    question = replace(question, log=tuple(_log(run)), measurements=names)
    part = Part(question=question, right=right, judge=judge, why=why, evidence=run.evidence)
    material = {"base": one.base, "bug": one.id, "category": one.category}
    return [about(part, {}, material)]


def evidence_job(one: Patched) -> ProgramJob:
    assert one.program is not None
    return ProgramJob(
        program=one.program,
        files=files_of(one),
        label="",
        stages=("measure",),
        limits=Limits(seconds=60.0),
    )


def _other_causes(one: Patched, dice: random.Random) -> Iterator[str]:
    """What other bugs of the program would be; it has none of them. Each is of another category,
    so that no two mean the same."""
    assert one.program is not None
    seen, mine = {one.category}, one.program.patches[one.id]
    bugs = dice.sample(one.program.bugs, len(one.program.bugs))
    for bug in bugs:
        if bug.category not in seen and not _near(bug, mine):
            seen.add(bug.category)
            yield split_cause(bug.why)[0]


def _near(bug: ProgramBug, other: ProgramBug) -> bool:
    return bug.overlaps(other) or bug.effect == "crash"


def split_cause(why: str) -> tuple[str, str]:
    """The first sentences that are not too long together, and those that are left."""
    sentences = _sentences(why)
    lengths = accumulate(len(sentence) + 1 for sentence in sentences)
    count = max(1, sum(length <= LONGEST for length in lengths))
    return " ".join(sentences[:count]), " ".join(sentences[count:])


def _without_clues(symptom: str, cause: str, others: Sequence[str]) -> list[str]:
    """The sentences of a symptom that share no word with the cause that no other cause has."""
    clues = _stems(cause) - set().union(*map(_stems, others))
    return [sentence for sentence in _sentences(symptom) if not _stems(sentence) & clues]


def _compared(run: TrainingRun, right: TrainingRun | None) -> Iterator[str]:
    """What the run shows, beside the right program's: in place of what would tell too much."""
    first, last = run.losses[0], run.losses[-1]
    yield f"The loss goes from {first:.3f} to {last:.3f} in {len(run.losses)} steps."
    if right:
        same = f"{last:.3f}" == f"{right.losses[-1]:.3f}"
        yield f"Without the bug it ends {'there, too' if same else f'at {right.losses[-1]:.3f}'}."
        if right.sample and right.sample != run.sample:
            yield f'Without it the sample is "{_first_line(right.sample)}".'


def _first_line(sample: str) -> str:
    return sample.splitlines()[0][:SHOWN]


def _stems(text: str) -> set[str]:
    return {word[:STEM].lower() for word in WORD.findall(text)}


def _sentences(text: str) -> list[str]:
    return SENTENCE.split(" ".join(text.split()))


def _log(run: TrainingRun) -> Iterator[str]:
    """What the run printed: losses at a few steps, and what the model says at the end."""
    count = len(run.losses)
    places = sorted({round(n * (count - 1) / (LOGGED - 1)) for n in range(LOGGED)})
    yield f"a model that knows nothing has the loss {run.expected_start:.3f}"
    yield from (f"step {n + 1:>4}   loss {run.losses[n]:.4f}" for n in places)
    if run.sample:
        yield f"sample: {_first_line(run.sample)}"

"""The frame of the kinds of questions: how one is drawn by its seed, asked and judged.

A kind is one file in `kinds/`: the file name is what `attnlab quiz` calls it, the docstring
explains it, and a function `draw` turns a piece of material and a die into the parts of a question:
the question itself and what is asked next about the same code. `MATERIAL` says what it draws from.

A question is known by its id alone, "shapes.17": kind and seed give the same question again, so
that nothing is kept between asking and judging.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from attnlab import __version__
from attnlab.errors import Broken, Refused
from attnlab.questions.kept import RUNS, find_entry, run_key
from attnlab.records.practice import Mark
from attnlab.records.quiz import BUDGET, Measurement, Question, QuizVerdict
from attnlab.suggest import did_you_mean

if TYPE_CHECKING:
    from attnlab.catalogue.load import Catalogue
    from attnlab.records import Job, Report
    from attnlab.records.program import ProgramJob, ProgramReport, TrainingRun
    from attnlab.records.trace import Op
    from attnlab.run_store import RunStore

R = TypeVar("R")
UNSAID = ("clean", "decoy", "other")  # of questions about code that has no bug by itself
SEARCHED = 300  # seeds among which one is looked for about a category
MOST = 4000  # the same where what is drawn tells its category
WAITS = 20  # seeds at most that are passed over
TRIES = 60  # pieces of material that may not fit before it is our own fault
LETTERS = "abcdefghijklmnop"
SEEDS = 10**9
LONGEST = 500  # characters of an answer


class Judged(NamedTuple):
    """What an answer is worth, as it was understood, and how it differs from the right one."""

    mark: Mark
    answer: str
    message: str


class Runner:
    """Runs jobs in the worker that `run_job` and `run_program` reach, each once; those whose result
    comes with attnlab not at all, if it may be `shipped`."""

    def __init__(
        self,
        run_job: Callable[[Job], Report],
        run_program: Callable[[ProgramJob], ProgramReport],
        kept: RunStore | None = None,
        shipped: bool = False,
    ) -> None:
        self.run_job, self.run_program = run_job, run_program
        self.kept, self.shipped = kept, shipped
        self._here: dict[str, Any] = {}

    def evidence(self, job: ProgramJob) -> TrainingRun | None:
        """The run of a program with what was measured; None where it ended early."""
        from attnlab.records.program import TrainingRun

        if self.shipped and (known := find_entry(RUNS, run_key(job), TrainingRun)):
            return known
        empty = TrainingRun(steps=0, losses=(), expected_start=0.0, seconds=0.0)
        run = self.once(job, TrainingRun, lambda: self.run_program(job).run or empty)
        return run if run.losses else None

    def once(self, job: object, kind: type[R], make: Callable[[], R]) -> R:
        """What came of the same job before, here or by another command, or is made now."""
        name = hashlib.sha256(f"{__version__} {job!r}".encode()).hexdigest()
        if name not in self._here:
            found = self.kept.get(name, kind) if self.kept else None
            if found is None:
                found = make()
                if self.kept:
                    with suppress(Refused):  # where it cannot be kept, it is made again
                        self.kept.add(name, kind.__name__, found)
            self._here[name] = found
        known: R = self._here[name]
        return known


@dataclass(frozen=True)
class Part:
    """A question with what only the judge knows."""

    question: Question
    right: str  # the right answer in words
    judge: Callable[[str], Judged]  # raises `Refused` where an answer cannot be understood
    why: str = ""
    waits: str = ""  # what is said while an answer is judged, if that takes long
    rows: Sequence[Op] = ()
    base: str = ""  # slug of the material
    bug: str = ""
    category: str = ""
    show: Callable[[], str] | None = None  # run it: what was seen, in a line
    evidence: Mapping[str, str] = field(default_factory=dict)  # measurements by their names

    @property
    def name(self) -> str:
        """The same for every question that asks the same, in whatever order and at whatever
        sizes."""
        return f"{self.base} {self.bug} {self.question.line}"


@dataclass(frozen=True)
class Kind:
    """A kind of question, as its file defines it."""

    id: str
    title: str  # the first line of its docstring
    text: str  # all of it
    material: str  # what of the catalogue a question is made of; "" of none
    draw: Callable[[Any, random.Random, Runner], Sequence[Part] | None]  # None: it does not fit
    categories: frozenset[str]  # what it can be asked about


def kind_names() -> list[str]:
    """The names of all kinds, which are those of their files."""
    import attnlab.questions.kinds as folder

    return sorted(found.name for found in pkgutil.iter_modules(folder.__path__))


def kinds() -> dict[str, Kind]:
    """All kinds by their names."""
    return {name: find_kind(name) for name in kind_names()}


@cache
def find_kind(name: str) -> Kind:
    """The kind of that name, without importing the others; raises `Refused` where there is none."""
    names = kind_names()
    if name not in names:
        hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
        raise Refused(f'no kind of question is called "{name}"', hint)
    from attnlab.catalogue.categories import CATEGORIES

    module = importlib.import_module(f"attnlab.questions.kinds.{name}")
    text = (module.__doc__ or "").strip()
    title = text.partition("\n")[0].rstrip(".")
    entries = module.entries() if hasattr(module, "entries") else ()
    named = {entry["category"] for entry in entries} or {*getattr(module, "ABOUT", CATEGORIES)}
    return Kind(name, title, text, module.MATERIAL, module.draw, frozenset(named))


def draw_piece(kind: Kind, dice: random.Random, catalogue: Catalogue | None) -> object:
    """What a question of the kind is made of; None of the kinds that need no catalogue, or where
    what was drawn has none."""
    if not kind.material:
        return None
    from attnlab.questions.material import Material

    assert catalogue is not None
    return Material(catalogue).draw(kind.material, dice)


def draw_parts(kind: Kind, seed: int, catalogue: Catalogue | None, runner: Runner) -> list[Part]:
    """The question of this seed and what follows it, with their ids."""
    dice = random.Random(f"{kind.id} {seed}")
    for _ in range(TRIES):
        piece = draw_piece(kind, dice, catalogue)
        fits = piece is not None or not kind.material
        if fits and (parts := kind.draw(piece, dice, runner)):
            return number_parts(kind.id, seed, parts)
    raise Broken(f"no question of the kind {kind.id} could be drawn with seed {seed}")


def about(part: Part, code: dict[str, Any], material: dict[str, Any]) -> Part:
    """The part with the code that it asks about, and what that was drawn from."""
    return replace(part, question=replace(part.question, **code), **material)


def asked(prompt: str, expects: str) -> Question:
    """A question without choices."""
    return Question(id="", kind="", seed=0, prompt=prompt, expects=expects)


def draw_about(
    category: str,
    kind: Kind,
    seed: int,
    catalogue: Catalogue | None,
    runner: Runner,
    lately: Collection[str] = (),
) -> list[Part]:
    """The first question from this seed on that is about such bugs; any where none is named. What
    was asked `lately`, by its own name or that of its code, waits for a while. Raises `Refused`
    where there is none."""
    known = {*kind.categories, UNSAID[-1], ""}
    unsaid = category in (*UNSAID, kind.id)  # only the question says so, not what it is made of
    cheap = not kind.material or not unsaid
    waits = WAITS if kind.material else SEARCHED
    last = (MOST if cheap else SEARCHED) if category else waits + 1
    for number in range(seed, seed + last) if category in known else ():
        piece = draw_piece(kind, random.Random(f"{kind.id} {number}"), catalogue)
        may_wait = number < seed + waits
        if may_wait and getattr(piece, "base", "") in lately:
            continue
        first = getattr(piece, "category", category)  # cheap to look at; what is made of it is not
        if first == category or not category or unsaid:
            parts = draw_parts(kind, number, catalogue, runner)
            wanted = not category or (parts[0].category or UNSAID[-1]) == category
            if wanted and not (may_wait and {parts[0].base, parts[0].name} & {*lately}):
                return parts
    hint = did_you_mean(category, kind.categories)
    hint = hint or f"it can be asked about {', '.join(sorted(kind.categories))}"
    raise Refused(f"--about {category}: {kind.id} asks nothing about that", hint, "--about")


def number_parts(kind: str, seed: int, parts: Iterable[Part]) -> list[Part]:
    """The parts with ids, the first `KIND.SEED`, the others `KIND.SEED.2` and so on."""
    return [
        replace(part, question=replace(part.question, id=_id(kind, seed, n), kind=kind, seed=seed))
        for n, part in enumerate(parts, 1)
    ]


def _id(kind: str, seed: int, number: int) -> str:
    return f"{kind}.{seed}" + (f".{number}" if number > 1 else "")


class QuestionId(NamedTuple):
    kind: Kind
    seed: int
    number: int


def read_id(text: str) -> QuestionId:
    """Kind, seed and number of the part; raises `Refused` where it is no id."""
    name, _, rest = text.partition(".")
    seed, _, number = rest.partition(".")
    kind = find_kind(name)
    numbers = [int(each) if each.isdecimal() and len(each) < 11 else -1 for each in (seed, number)]
    if not number and "." not in rest:
        numbers[1] = 1
    if not (0 <= numbers[0] < SEEDS and numbers[1] > 0):
        raise Refused(f'"{text}" is no id of a question', "as in --answer shapes.17=ANSWER")
    return QuestionId(kind, *numbers)


def find_measurement(part: Part, typed: str, before: int = 0) -> Measurement:
    """One that is asked for by its number or name, after so many others; raises `Refused`."""
    names, word = part.question.measurements, typed.strip()
    if not names:
        raise Refused(f"{part.question.id} has nothing to measure", "incidents have")
    if before >= BUDGET:
        raise Refused("no measurement is left", "name the cause")
    numbered = word.isdecimal() and len(word) < 4 and 0 < int(word) <= len(names)
    name = names[int(word) - 1] if numbered else word.lower()
    if name not in names:
        hint = did_you_mean(name, names) or f"type a number from 1 to {len(names)}"
        raise Refused(f'"{typed[:40]}" is no measurement', hint)
    left = BUDGET - before - 1
    return Measurement(id=part.question.id, name=name, value=part.evidence[name], left=left)


def judge(
    parts: Sequence[Part], number: int, typed: str, seconds: float = 0.0, measured: int = 0
) -> QuizVerdict:
    """The verdict on an answer to one of the parts; raises `Refused` where it says nothing."""
    part = parts[number - 1]
    if not typed.strip():
        raise Refused("an empty answer says nothing", _expected(part.question))
    if len(typed) > LONGEST:
        raise Refused(f"{len(typed):,} characters are no answer", _expected(part.question))
    found = part.judge(typed.strip())
    return QuizVerdict(
        id=part.question.id,
        kind=part.question.kind,
        outcome=found.mark,
        answer=found.answer,
        right=part.right,
        message=found.message,
        why=part.why,
        rows=tuple(part.rows),
        next=parts[number].question.id if number < len(parts) else "",
        seconds=seconds,
        measured=measured if len(part.evidence) > 1 else 0,  # looking the answer up is no clue
        prompt=part.question.prompt,
    )


def _expected(question: Question) -> str:
    if question.choices:
        return f"type a letter from a to {LETTERS[len(question.choices) - 1]}"
    return f"type {question.expects}"


# ---------------------------------------------------------------- choices


def choice(
    dice: random.Random, right: str, wrong: Iterable[str], prompt: str, ordered: bool = False
) -> tuple[Question, str, Callable[[str], Judged]]:
    """A question with choices, the right answer, and its judge. Choices come in a drawn order, or,
    where they are `ordered`, as they stand in `wrong`, the right one among them."""
    choices = list(dict.fromkeys(wrong if ordered else (right, *wrong)))
    if not ordered:
        dice.shuffle(choices)
    question = Question(id="", kind="", seed=0, prompt=prompt, choices=tuple(choices))
    return question, right, lambda typed: _judge_choice(typed, tuple(choices), right)


def _judge_choice(typed: str, choices: tuple[str, ...], right: str) -> Judged:
    chosen = read_choice(typed, choices)
    if chosen == right:
        return Judged("right", chosen, "")
    return Judged("wrong", chosen, f"you said: {chosen}")


def read_choice(typed: str, choices: tuple[str, ...]) -> str:
    """The choice that is meant: its letter, its number from 1, or its words."""
    whole = " ".join(typed.lower().split())
    word = whole.strip(" .)(")
    same = [c for c in choices if " ".join(c.lower().split()) in (whole, word)]
    begun = [c for c in choices if len(word) > 2 and c.lower().startswith(word)]
    if same or len(begun) == 1:
        return (same or begun)[0]
    place = LETTERS.find(word) if len(word) == 1 and word.isalpha() else -1
    if word.isdecimal() and len(word) < 3:
        place = int(word) - 1
    if not 0 <= place < len(choices):
        last = LETTERS[len(choices) - 1]
        raise Refused(f'"{typed}" is none of the choices', f"type a letter from a to {last}")
    return choices[place]

"""Whole programs with bugs: what is practised in a debugging round, and what grading one says.

A program is a few files, its model and the loop that trains it. Bugs and decoys are patches of the
right files; a round is a program with several of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from attnlab.records.base import record
from attnlab.records.check_results import CheckResult, Outcome
from attnlab.records.job import Contract, GradeOutcome, Limits
from attnlab.records.patch import Edit, FollowUp
from attnlab.records.trace import Trace

Files = dict[str, str]  # texts by file name: {"model.py": "import ..."}
Effect = Literal[
    "crash", "wrong values", "leak", "slow learning", "evaluation", "generation", "memory"
]
ENTRIES = ("make_model", "make_optimizer", "train")  # every program declares these
FORWARD = "forward"  # what is called where the model is no module but a dict of weights
# The parts that a program may have besides, and their entries.
PARTS = {"evaluation": "evaluate", "generation": "generate", "prediction": "predict"}


# ---------------------------------------------------------------- the material


@record
class ProgramBug:
    """A patch of the right files. A decoy is one as well, after which they are still right."""

    id: str  # never shown before a round has ended
    edits: tuple[Edit, ...]
    decoy: bool = False
    category: str = ""
    level: int = 1
    symptom: str = ""  # as a person meets it
    effect: Effect = "wrong values"
    seen_by: tuple[str, ...] = ()  # ids of the parts or goals that must fail with it alone
    hints: tuple[str, ...] = ()
    why: str = ""  # it is wrong; of a decoy: it is right
    find: str = ""  # how one finds it
    source: str = ""
    follow_ups: tuple[FollowUp, ...] = ()
    fixes: tuple[tuple[Edit, ...], ...] = ()  # other right ways to write the place

    def overlaps(self, other: ProgramBug) -> bool:
        """Whether both change the same place, so that a round can hold only one of them."""
        return any(a.overlaps(b) for a in self.edits for b in other.edits)


@record
class Unit:
    """A class of the model with a contract of its own."""

    id: str
    title: str
    file: str
    class_name: str
    contract: Contract


@record
class Goal:
    """What a trained model has to reach. Texts are expressions over the right program's modules."""

    id: str
    title: str
    kind: Literal["loss", "accuracy", "generate"]
    batch: str = ""  # loss, accuracy: inputs of the model, then targets; -100 is not counted
    bound: float = 0.0  # the loss is below it, the accuracy at least it
    prompt: str = ""  # generate: the ids to begin with
    expected: str = ""  # generate: all ids, the prompt's among them
    count: int = 0  # generate: new ids to ask for; 0: as many as `expected` has over the prompt


@record
class StageCheck:
    """One thing that a stage asks for. Texts are Python over the modules, `model` and `fill`."""

    id: str
    title: str
    value: str  # tensors, numbers or lists of the candidate's program; a dict names several
    setup: str = ""  # lines before it
    right: str = ""  # what the right program gives; the same expression where it is left out
    tolerance: float = 1e-9
    rows: int = 0  # that may go through one weight while the value is computed; 0: as many as like
    largest: int = 0  # elements of a tensor that is made meanwhile


@record
class Slip:
    """A wrong way to write a stage, as edits of its solution."""

    id: str
    edits: tuple[Edit, ...]
    seen_by: tuple[str, ...]  # ids of checks that must fail
    why: str


@record
class Stage:
    """A task after the bugs, on the program as the candidate left it. Texts are Markdown."""

    id: str
    order: int
    title: str
    minutes: int
    task: str
    hints: tuple[str, ...]
    follow_ups: tuple[FollowUp, ...]
    checks: tuple[StageCheck, ...]
    given: Files  # what is put beside the program's files
    solution: Files  # the whole right program with it
    styles: dict[str, Files] = field(default_factory=dict)  # other right ones
    slips: tuple[Slip, ...] = ()


@record
class Training:
    """How the training half is called: entries are `file.function`, sizes in elements."""

    entries: dict[str, str]  # by the names of ENTRIES, and FORWARD and those of PARTS that it has
    steps: str  # the constant that says how many steps reach the goals: "train.STEPS"
    classes: str  # an expression for the number of classes: the first loss is its logarithm
    sample: str  # an expression over the modules and `model` for a text that shows what it does
    prompts: tuple[str, ...] = ()  # expressions for ids that generation is compared on
    items: tuple[str, ...] = ()  # expressions for a tensor, or several, that predict is given
    constants: tuple[str, ...] = ()  # that a fix does not change: "train.CLIP"
    settings: dict[str, int] = field(default_factory=dict)  # constants with a value of the grader
    loose: dict[str, int] = field(default_factory=dict)  # in a run that nothing is to limit
    unit: str = ""  # that make_model builds; without it, weights of other names are not found
    sizes: dict[str, int] = field(default_factory=dict)  # of that unit

    @property
    def files(self) -> set[str]:
        """Those in which the training half lies."""
        loop = (entry for name, entry in self.entries.items() if name != FORWARD)
        return {f"{entry.partition('.')[0]}.py" for entry in loop}

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the training half."""
        return ("training", *(part for part, entry in PARTS.items() if entry in self.entries))


@record
class Program:
    """One folder `programs/NAME/`. Texts are Markdown; files are held with their texts."""

    slug: str
    title: str
    level: int
    minutes: int
    symptom: str
    task: str
    source: str
    folder: str
    edit: tuple[str, ...]  # the files that may be changed
    given: tuple[str, ...]  # those that may not
    files: Files  # the right program
    training: Training
    units: tuple[Unit, ...]
    goals: tuple[Goal, ...]
    bugs: tuple[ProgramBug, ...]
    decoys: tuple[ProgramBug, ...]
    chosen: tuple[str, ...]  # bugs and decoys of the round that `start` gives
    styles: dict[str, Files] = field(default_factory=dict)  # other right programs
    questions: tuple[FollowUp, ...] = ()  # that a good candidate asks before starting
    stages: tuple[Stage, ...] = ()  # in the order in which they open

    @property
    def topic(self) -> str:
        return self.slug.partition("/")[0]

    @property
    def name(self) -> str:
        return self.slug.partition("/")[2]

    def symptom_of(self, bugs: Sequence[str]) -> str:
        """What a person sees of a round with these bugs; "" of a drawn one, which a run shows."""
        return self.symptom if set(bugs) == set(self.chosen) else ""

    def stage(self, name: str) -> Stage | None:
        """The stage of that name; None where there is none."""
        return next((stage for stage in self.stages if stage.id == name), None)

    def given_by(self, stage: Stage) -> Files:
        """The files that a stage and all before it put beside the program's: what was written with
        them goes on to need them."""
        before = [other for other in self.stages if other.order < stage.order]
        return {name: text for one in (*before, stage) for name, text in one.given.items()}

    @property
    def patches(self) -> dict[str, ProgramBug]:
        """Bugs and decoys by id."""
        return {patch.id: patch for patch in (*self.bugs, *self.decoys)}


# ---------------------------------------------------------------- what is asked and answered


@record
class ProgramJob:
    """Train a program, or grade it, or tell which bugs of its round are gone."""

    program: Program
    files: Files  # the candidate's, those that are given among them
    label: str  # the folder, as messages show it
    stages: tuple[Literal["train", "measure", "material", "grade", "stage", "goals", "bugs"], ...]
    open_stage: str = ""  # the one after the bugs that "stage" grades
    checks: tuple[str, ...] = ()  # of that stage, with which its grade may end; all
    bugs: tuple[str, ...] = ()  # of the round, in which "bugs" looks
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    steps: int | None = None  # to train, in place of the program's own
    first_failure: bool = False  # end the grade at the first part that is wrong
    every_unit: bool = False  # grade also those that are as in the right program


@record
class PartResult:
    """One part of a program: a unit of the model, or an entry of the training half."""

    id: str
    title: str
    outcome: Outcome
    message: str = ""
    reason: Literal["", "crashed", "timeout", "memory"] = ""  # what ended it, where it failed so
    checks: tuple[CheckResult, ...] = ()


@record
class GoalResult:
    id: str
    title: str
    outcome: Outcome
    message: str = ""


@record
class StageResult:
    """What became of the stage that is open."""

    id: str
    title: str
    checks: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        return all(check.outcome == "passed" for check in self.checks)

    @property
    def failed(self) -> CheckResult | None:
        """The first check that did not pass."""
        return next((check for check in self.checks if check.outcome != "passed"), None)


@record
class BugResult:
    """Whether a bug is gone; None where the program does what no choice of bugs explains."""

    id: str
    fixed: bool | None
    changed: bool = False  # its lines are not as they were given


@record
class TrainingRun:
    """One run of the training half as a user would run it."""

    steps: int
    losses: tuple[float, ...]
    expected_start: float  # the loss of a model that knows nothing
    seconds: float
    sample: str = ""
    failed_step: int | None = None  # at which it raised, or its loss was NaN, from 1
    error: str = ""  # "train.py:41: RuntimeError: ..."
    trace: Trace | None = None  # of that step
    evidence: dict[str, str] = field(default_factory=dict)  # measurements by what one asks for


@record
class ProgramReport:
    outcome: GradeOutcome
    message: str = ""
    hint: str = ""
    parts: tuple[PartResult, ...] = ()
    goals: tuple[GoalResult, ...] = ()
    bugs: tuple[BugResult, ...] = ()
    stage: StageResult | None = None  # it has no part in `outcome`, which tells of the bugs
    run: TrainingRun | None = None
    notes: tuple[str, ...] = ()
    output: str = ""
    isolation: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int = 0

    @property
    def passed(self) -> bool:
        """Whether the bugs are done, and the stage as well where one is open."""
        return self.outcome == "passed" and (self.stage is None or self.stage.passed)

    @property
    def bugs_gone(self) -> int:
        """Those that are gone for certain."""
        return sum(bool(bug.fixed) for bug in self.bugs)

    @property
    def new_fault(self) -> bool:
        """Whether something is wrong that is none of the bugs."""
        gone = bool(self.bugs) and self.bugs_gone == len(self.bugs)
        return gone and self.outcome != "passed"

    @property
    def score(self) -> float:
        """1 for a passed round and for no other; else the share of the parts that are right."""
        if self.outcome == "passed":
            return 1.0
        whole = len(self.parts) + len(self.goals) or 1
        right = self.parts_right + sum(goal.outcome == "passed" for goal in self.goals)
        return right / max(whole, right + 1)

    @property
    def parts_right(self) -> int:
        return sum(part.outcome == "passed" for part in self.parts)

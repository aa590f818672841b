"""Grade a program: its model's units alone, its training half beside the right program's, goals.

Both programs start from the same weights, count in float64 and drop no values, so two right ones
agree however they are written. Where a half is wrong, it is tried with the right other half
(substitution), so that one mistake is counted once. Which bugs of a round are gone is told by what
was written at the place of each, put into the right program alone; where that does not tell, by the
one choice of bugs with which the right program does what the candidate does (subsets).
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, Literal

from torch import Tensor

from attnlab.candidate.host import Died, Host, LastingHost, Raised, Spawn, checked_answer
from attnlab.catalogue.places import Change, Stray, change_alone, stray_changes
from attnlab.catalogue.programs import compose, count_changed_lines
from attnlab.catalogue.weight_expressions import Misfit
from attnlab.grading.observations import (
    TITLES,
    Cases,
    Observed,
    Rename,
    Weights,
    accuracy_of,
    behaves_alike,
    compare,
    compare_runs,
    constant_answers,
    crash_text,
    failure_reason,
    loss_of,
    observe,
    observe_part,
)
from attnlab.grading.pipeline import run_job
from attnlab.grading.program_sources import files_behind, syntax_trees, unit_code, uses
from attnlab.grading.stages import cannot_compare, grade_stage, right_values
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.reference import FileReference, ReferenceCache
from attnlab.probe.weights.layouts import Indices, map_weights, weight_indices
from attnlab.probe.weights.match import MatchContext, find_map, shapes_of
from attnlab.records import (
    CheckResult,
    GradeOutcome,
    Job,
    Limits,
    Outcome,
    Report,
    Trace,
    from_json,
)
from attnlab.records.program import (
    BugResult,
    Files,
    Goal,
    GoalResult,
    PartResult,
    Program,
    ProgramJob,
    ProgramReport,
    Stage,
    StageResult,
    TrainingRun,
    Unit,
)

NOISE = 0.02  # added to the right program's first weights: no bias is 0, no gain is 1
Reason = Literal["", "crashed", "timeout", "memory"]
REASONS: dict[str, Reason] = {r: r for r in ("crashed", "timeout", "memory")}
LONGEST = 8 << 20  # characters of a trace
MOST_SUBSETS = 32
MOST_STRAYS = 8  # runs of lines at no bug that are tried as the fix of one
# The checks that see most wrong units; a repaired one is made by these and by what it failed.
TELLING = ("output-shape", "matches-reference", "train-mode", "no-hidden-state")
RUSH = 2.0  # seconds before the deadline in which each unit has a process, and an alarm, of its own
PATIENCE = 2  # times the right program's steps in which a goal has to be reached


class Side:
    """A process with a program in it."""

    def __init__(
        self, grader: ProgramGrader, files: Files, exact: bool = True, mine: bool = False
    ) -> None:
        self.grader, self.files, self.exact, self.mine = grader, files, exact, mine
        self.host: Host | None = None
        self.constants: dict[str, str] = {}

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The answer of a verb; raises `Raised` and `Died`."""
        if self.host is None:
            self._start()
        assert self.host is not None
        try:
            return checked_answer(self.host.ask(verb, **args))
        except Died:
            self.host = None
            raise

    def take_process(self, other: Side) -> None:
        """Load this program into the process of another one, which has done what it was for."""
        self.host, other.host = other.host, None
        if self.host is not None:
            self._load()

    def _start(self) -> None:
        self.host = self.grader.spawn_host()
        if self.mine:
            self.grader.my_hosts.append(self.host)
        self._load()

    def _load(self) -> None:
        grader, training = self.grader, self.grader.program.training
        asked = {
            "files": self.files,
            "label": grader.label,
            "entries": training.entries,
            "constants": [training.steps, *training.constants],
        }
        self.constants = self.ask("load_program", **asked, exact=self.exact)["constants"]
        if self.exact:
            self.ask("change_settings", settings=training.settings, loose=training.loose)


@dataclass
class RightProgram:
    """What the right program does from given weights: the same for all grades with its seed."""

    weights: dict[str, Tensor]  # a tied parameter under each of its names
    tied: dict[str, str]  # the first name of each further name of a parameter
    observed: Observed
    cases: Cases
    constants: dict[str, str]
    values: dict[str, Any]  # of the expressions of its goals
    steps: int
    classes: int


class ProgramGrader:
    """One job: the candidate's program, the right one, and the processes they run in."""

    def __init__(
        self, job: ProgramJob, spawn: Spawn, references: ReferenceCache, known: dict[str, Any]
    ) -> None:
        self.job, self.program, self.known = job, job.program, known
        self.spawn, self.references = spawn, references
        self.deadline = time.monotonic() + job.limits.seconds
        self.hosts: list[Host] = []
        self.my_hosts: list[Host] = []  # those that run the candidate's program as it is
        self.label = f"{job.label}/"
        self.mine = Side(self, job.files, mine=True)
        self.unit_host: LastingHost | None = None  # in which the candidate's units are graded
        self.indices: Indices | None = None  # of my parameters in the right ones'
        self.parts: list[PartResult] = []

    def spawn_host(self) -> Host:
        limits = self.job.limits
        if {"train", "measure"} & {
            *self.job.stages
        }:  # all of it is one call: its alarm must ring in time
            limits = replace(limits, seconds=max(self.deadline - time.monotonic(), 0.5))
        host = self.spawn(limits, False, self.deadline)
        self.hosts.append(host)
        return host

    def close(self) -> None:
        for host in self.hosts:
            host.close()

    # ------------------------------------------------------------ the right program

    def right(self) -> RightProgram:
        """What the right program does, once for each program and seed."""
        key = f"{self.job.seed} {self.program.slug} {hash(tuple(self.program.files.values()))}"
        if key not in self.known:
            self.known[key] = self._observe_right()
        found: RightProgram = self.known[key]
        return found

    def _observe_right(self) -> RightProgram:
        training, side = self.program.training, Side(self, self.program.files)
        inputs = [*training.prompts, *training.items]
        steps, classes, *given = side.ask(
            "evaluate_expressions", expressions=[training.steps, training.classes, *inputs]
        )["values"]
        known = dict(zip(inputs, given, strict=True))
        drawn = side.ask("initial_weights", seed=self.job.seed)
        cases = {part: [] for part in training.parts} | {
            part: [known[text] for text in expressions]
            for part, expressions in (
                ("generation", training.prompts),
                ("prediction", training.items),
            )
            if expressions
        }
        weights = _add_noise(drawn["tensors"], drawn["tied"], Dice(self.job.seed))
        return RightProgram(
            weights=weights,
            tied=drawn["tied"],
            observed=observe(side, weights, cases),
            cases=cases,
            constants=side.constants,
            values=self._goal_values(),
            steps=steps,
            classes=classes,
        )

    def _goal_values(self) -> dict[str, Any]:
        """What goals are measured on: the same numbers as `python train.py` has, which draws others
        than a program that counts in float64."""
        texts = [t for g in self.program.goals for t in (g.batch, g.prompt, g.expected) if t]
        side = Side(self, self.program.files, exact=False)
        values = side.ask("evaluate_expressions", expressions=texts)["values"]
        return dict(zip(texts, values, strict=True))

    # ------------------------------------------------------------ weights of other names

    def my_weights(self) -> tuple[dict[str, Tensor], str]:
        """The right weights by the candidate's parameters; or why they do not fit."""
        right = self.right().weights
        answer = self.mine.ask("initial_weights", seed=self.job.seed)
        mine = answer["tensors"]
        misfits = [n for n, t in mine.items() if n not in right or right[n].shape != t.shape]
        if not misfits:
            return {n: right[n] for n in mine}, ""
        own = {n: t for n, t in mine.items() if n not in answer["tied"]}
        return self._mapped_weights(own, misfits[0])

    def _mapped_weights(self, mine: Weights, misfit: str) -> tuple[dict[str, Tensor], str]:
        training = self.program.training
        unit = next((u for u in self.program.units if u.id == training.unit), None)
        if unit is None:
            return {}, f"the model has no parameter {misfit} as it was given: put its name back"
        host, side = self.spawn_host(), self.spawn_host()
        code = unit_code(unit, self.job.files, self.label)
        load = {"file": code.file, "text": code.text, "path": "", "own": None}
        checked_answer(host.ask("load", **load, siblings=dict(code.siblings)))
        reference = FileReference(unit_code(unit, self.program.files, ""), side)
        dice = Dice(self.job.seed)
        entries = unit.contract.weights or None
        if entries is None:
            match = MatchContext(host, unit.class_name, reference, unit.contract, dice)
            entries = find_map(match).entries
        if entries is None:
            return {}, f"the model has a parameter {misfit} that the right program does not have"
        try:
            right = self._without_aliases(self.right().weights)
            shapes = shapes_of(mine), shapes_of(right)
            self.indices = weight_indices(entries, *shapes, training.sizes)
        except Misfit as reason:
            return {}, f"its weights cannot be given to the model: {reason}"
        return map_weights(right, self.indices), ""

    def count_parameters(self, units: Sequence[PartResult]) -> list[PartResult]:
        """The results, where a model that cannot be compared since it has more or fewer numbers in
        its parameters is wrong: which there are is declared by the program that was given."""
        whole = self.program.training.unit
        if not any(unit.id == whole and unit.outcome == "error" for unit in units):
            return list(units)
        answer = self.mine.ask("initial_weights", seed=self.job.seed)
        mine = _count(answer["tensors"], answer["tied"])
        right = _count(self.right().weights, self.right().tied)
        if mine == right:
            return list(units)
        message = f"the model has {mine} numbers in its parameters, as it was given {right}"
        return [
            replace(unit, outcome="failed", message=message) if unit.id == whole else unit
            for unit in units
        ]

    def in_my_names(self, parameters: Weights) -> dict[str, Tensor]:
        """The right program's parameters by the candidate's names."""
        if self.indices is None:
            return dict(parameters)
        return map_weights(self._without_aliases(parameters), self.indices)

    def _without_aliases(self, parameters: Weights) -> dict[str, Tensor]:
        """The right program's parameters, a tied one under its first name alone."""
        tied = self.right().tied
        return {n: t for n, t in parameters.items() if n not in tied}

    # ------------------------------------------------------------ parts

    def grade_units(self, quick: bool = False) -> list[PartResult]:
        """Every unit alone; one that fails beside another wrong one, with the right other one."""
        alone = {unit.id: self._grade_unit(unit, (), quick) for unit in self.program.units}
        wrong = [unit for unit in self.program.units if alone[unit.id].outcome == "failed"]
        return [self._blamed(unit, alone[unit.id], wrong) for unit in self.program.units]

    def each_unit(self) -> Iterator[PartResult]:
        """Every unit as it is."""
        return (self._grade_unit(unit) for unit in self.program.units)

    def _blamed(self, unit: Unit, alone: PartResult, wrong: Sequence[Unit]) -> PartResult:
        others = [u for u in wrong if u.id != unit.id and uses(self.program.files, unit, u)]
        if alone.outcome != "failed" or not others:
            return alone
        failed = tuple(check.id for check in alone.checks if check.outcome == "failed")
        repaired = self._grade_unit(unit, others, quick=True, only=(*TELLING, *failed))
        if repaired.outcome != "passed":
            return alone
        names = " and ".join(other.class_name for other in others)
        return replace(repaired, message=f"right with the right {names} in it")

    def _grade_unit(
        self,
        unit: Unit,
        others: Sequence[Unit] = (),
        quick: bool = False,
        only: tuple[str, ...] = (),
    ) -> PartResult:
        if not self.job.every_unit and self._as_in_the_right_program(unit):
            return PartResult(id=unit.id, title=unit.title, outcome="passed")
        left = max(self.deadline - time.monotonic(), 0.5)
        job = Job(
            candidate=unit_code(unit, self.job.files, self.label, self.program, others),
            contract=unit.contract,
            reference=unit_code(unit, self.program.files, ""),
            stages=("check",),
            limits=replace(self.job.limits, seconds=left),
            seed=self.job.seed,
            until="verdict",
            quick=quick,
            only=only,
        )
        report = run_job(job, self._spawn_for_unit(), self.references)
        outcome, message, reason = unit_outcome(report)
        return PartResult(
            id=unit.id,
            title=unit.title,
            outcome=outcome,
            message=message,
            reason=reason,
            checks=report.checks,
        )

    def _as_in_the_right_program(self, unit: Unit) -> bool:
        """Whether nobody changed the file of a unit, nor one that it imports."""
        right = self.program.files
        needed = files_behind(unit.file, tuple(right.items()))
        return all(self.job.files[file] == right[file] for file in needed)

    def _spawn_for_unit(self) -> Spawn:
        """Gives the candidate, which a job asks for first, the process of the units before it."""
        asked = False

        def spawn(limits: Limits, own: bool, deadline: float) -> Host:
            nonlocal asked
            if asked or self.deadline - time.monotonic() < RUSH:
                return self.spawn(limits, own, deadline)
            asked = True
            if self.unit_host is None or not self.unit_host.alive:
                host = self.spawn(limits, own, deadline)
                self.hosts.append(host)
                self.unit_host = LastingHost(host)
            return self.unit_host

        return spawn

    def grade_entries(self, parts: Iterable[str] = ()) -> Iterator[PartResult]:
        """The parts of the training half, all or these, with the candidate's own model."""
        right = self.right()
        weights, refusal = self.my_weights()
        for part in parts or right.cases:
            title = TITLES[part]
            if refusal:
                yield PartResult(id=part, title=title, outcome="error", message=refusal)
                continue
            message, reason = self._compared(part, self.mine, weights, self.in_my_names)
            yield PartResult(
                id=part,
                title=title,
                outcome="failed" if message else "passed",
                message=message,
                reason=reason,
            )

    def _compared(
        self, part: str, side: Side, weights: Weights, rename: Rename
    ) -> tuple[str, Reason]:
        """How a part differs from the right program's, and how it ended where it did not."""
        right = self.right()

        def differs(number: int, run: Any) -> str:
            return compare_runs(run, right.observed["training"]["runs"][number], rename)

        seen = observe_part(part, side, weights, right.cases, enough=differs)
        return compare(part, {part: seen}, right.observed, rename), failure_reason(seen)

    def blame_entries(self, parts: Sequence[PartResult]) -> list[PartResult]:
        """The same with the right model, where a part is wrong and so is the own model."""
        if not self._can_substitute():
            return list(parts)
        files = {file: self.job.files[file] for file in self.program.training.files}
        side = Side(self, self.program.files | files)
        if any(part.outcome == "failed" for part in parts) and side.files != self.program.files:
            side.take_process(self.mine)
        return [self._substituted(p, side) if p.outcome == "failed" else p for p in parts]

    def _substituted(self, part: PartResult, side: Side) -> PartResult:
        """The part with the right model; in a loop that nobody changed it is the right program."""
        message, reason = "", part.reason
        if side.files != self.program.files:
            message, reason = self._compared(part.id, side, self.right().weights, dict)
        return replace(
            part,
            outcome="failed" if message else "passed",
            message=message or "right with the right model",
            reason=reason if message else "",
        )

    def _can_substitute(self) -> bool:
        """Not in a stage: the right model of before has not what the loop may ask of it by now."""
        return self.program.training.files != set(self.program.edit) and not self.job.open_stage

    # ------------------------------------------------------------ goals

    def reach_goals(self) -> Iterator[GoalResult]:
        """Train as long as the right program needs, and once more where that was not enough."""
        right, side = self.right(), Side(self, self.job.files, exact=False, mine=True)
        run = side.ask("train_model", seed=self.job.seed, steps=right.steps)
        if ended := run.get("ended"):
            raise Raised({"verb": "train", **ended})
        if wrong := self._eval_step(run["modes"]):
            yield wrong
        results = [self.goal_result(side, goal) for goal in self.program.goals]
        for _ in range(1, PATIENCE):
            if all(result.outcome == "passed" for result in results):
                break
            side.ask("continue_training", steps=right.steps)
            results = [self.goal_result(side, goal) for goal in self.program.goals]
        yield from results

    def _eval_step(self, modes: Sequence[bool]) -> GoalResult | None:
        """A step in eval mode, late in training, where the right program drops values in all."""
        right = self.right().observed["training"]["runs"][0]
        if all(modes) or not (right["dropout"] and all(right["modes"])):
            return None
        step = modes.index(False) * self.right().steps // len(modes) + 1
        message = f"step {step} ran in eval mode, so that its dropout dropped nothing"
        title = "every training step runs in train mode"
        return GoalResult(id="train-mode", title=title, outcome="failed", message=message)

    def goal_result(self, side: Side, goal: Goal) -> GoalResult:
        values = self.right().values
        if goal.kind == "generate":
            expected, prompt = values[goal.expected], values[goal.prompt]
            count = goal.count or expected.shape[1] - prompt.shape[1]
            given = 0 if goal.count else prompt.numel()
            ids = side.ask("generate_ids", prompt=prompt, count=count)["output"]
            same = isinstance(ids, Tensor) and ids.shape == expected.shape
            equal = int((ids == expected).sum()) if same else 0
            reached = equal == expected.numel()
            message = f"{equal - given if same else 0} of {expected.numel() - given} ids"
        else:
            *inputs, targets = values[goal.batch]
            logits = side.ask("model_logits", inputs=inputs)["output"]
            value = (
                loss_of(logits, targets) if goal.kind == "loss" else accuracy_of(logits, targets)
            )
            reached = value < goal.bound if goal.kind == "loss" else value >= goal.bound
            needed = "below" if goal.kind == "loss" else "at least"
            message = f"{goal.kind} {value:.3f}, needed {needed} {goal.bound:g}"
        outcome: Outcome = "passed" if reached else "failed"
        return GoalResult(id=goal.id, title=goal.title, outcome=outcome, message=message)

    # ------------------------------------------------------------ stages

    def grade_stage(self, stage: Stage) -> StageResult:
        """The checks of the stage that is open, with the right program's weights."""
        weights, refusal = self.my_weights()
        if refusal:
            return cannot_compare(stage, refusal)
        key = f"{self.job.seed} {self.program.slug} {hash(repr(stage))}"
        if key not in self.known:
            right = Side(self, stage.solution)
            self.known[key] = right_values(right, self.right().weights, stage)
        return grade_stage(self.mine, weights, stage, self.known[key])

    # ------------------------------------------------------------ bugs

    @property
    def bugs(self) -> list[str]:
        """The bugs of the round, without its decoys."""
        return [b for b in self.job.bugs if not self.program.patches[b].decoy]

    def tell_bugs(self) -> tuple[BugResult, ...]:
        """Which bugs of the round are gone, by what the program does."""
        changes = {bug: change for bug in self.bugs if (change := self._changed_at(bug))}
        gone = [bug for bug, change in changes.items() if self._is_right(change.files, bug)]
        told = {bug: bug in gone or self._is_gone(bug, gone) for bug in self.bugs}
        if None in told.values():
            told = self._tell_by_subsets(told, untouched=set(self.bugs) - set(changes))
        return tuple(BugResult(id=bug, fixed=fixed) for bug, fixed in told.items())

    def _changed_at(self, bug: str, strays: Collection[Stray] = ()) -> Change | None:
        return change_alone(self.program, self.job.bugs, self.job.files, bug, strays)

    def _is_gone(self, bug: str, gone: Sequence[str]) -> bool | None:
        """Whether the right program stays right with what was written at the place of a bug that
        is not right by itself, and with all that was written at no bug, or one run of it; None
        where that may be what is wrong with it."""
        here = self._changed_at(bug)
        runs = stray_changes(self.program, self.job.bugs, self.job.files, bug, gone)
        tries = [list(chain(*runs)), *runs] if len(runs) > 1 else runs
        for strays in tries[:MOST_STRAYS]:
            changed = self._changed_at(bug, strays)
            if changed and self._is_right(changed.files, bug):
                return True
        return None if runs or (here and here.shared) else False

    def _is_right(self, files: Files, bug: str) -> bool:
        """Whether these files do what the right program does, in all that shows the bug. Told at
        once where they are its own code, or were looked at in an earlier grade."""
        codes = syntax_trees(files)
        decoys = [b for b in self.job.bugs if b not in self.bugs]
        if codes and codes == syntax_trees(compose(self.program, decoys)):
            return True
        key = f"{self.job.seed} {self.program.slug} {bug} {hash(tuple(files.items()))}"
        if key not in self.known:
            try:
                self.known[key] = self._behaves_rightly(files, bug)
            except Died:  # it may have been slow today
                return False
        return bool(self.known[key])

    def _behaves_rightly(self, files: Files, bug: str) -> bool:
        job = replace(self.job, files=files, open_stage="")
        other = ProgramGrader(job, self.spawn, self.references, self.known)
        other.hosts, other.deadline = self.hosts, self.deadline
        seers = self.program.patches[bug].seen_by
        units = (
            other._grade_unit(unit, quick=True) for unit in self.program.units if unit.id in seers
        )
        try:
            parts = chain(other.grade_entries(_cheapest_first(self.right().cases)), units)
            return all(part.outcome == "passed" for part in parts)
        except Raised:
            return False

    def _tell_by_subsets(
        self, known: dict[str, bool | None], untouched: Collection[str]
    ) -> dict[str, bool | None]:
        """The same by the choices of bugs with which the right program does what mine does. Where
        there is none, another mistake is in the way, and a bug at whose place nothing was written
        is taken to be left."""
        right = self.right()
        weights, refusal = self.my_weights()
        choices = _subsets(known)
        if refusal or len(choices) > MOST_SUBSETS:
            return _left_where_untouched(known, untouched)
        mine = observe(self.mine, weights, right.cases)
        sides = {left: Side(self, compose(self.program, left)) for left in choices}
        for part in _cheapest_first(right.cases):
            sides = {
                left: side
                for left, side in sides.items()
                if self._behaves_alike(part, mine, side, right)
            }
        choices = list(sides)
        if not choices:
            return _left_where_untouched(known, untouched)
        if len(choices) > 1:  # they do the same, as where one bug crashes before the others: what
            # was written tells which it is, if one of them is nearer than all others
            choices = _nearest(choices, self.program, self.job.files)
        return {b: _agreed(b, choices) if fixed is None else fixed for b, fixed in known.items()}

    def _behaves_alike(self, part: str, mine: Observed, side: Side, right: RightProgram) -> bool:
        theirs = observe_part(part, side, right.weights, right.cases)
        return behaves_alike(part, mine[part], theirs, self.in_my_names)


def run_program(
    job: ProgramJob, spawn: Spawn, references: ReferenceCache, known: dict[str, Any]
) -> ProgramReport:
    """Do the stages of a job; `known` holds what right programs do from one job to the next."""
    started = time.monotonic()
    grader = ProgramGrader(job, spawn, references, known)
    report = ProgramReport(outcome="error", seed=job.seed)
    with ExitStack() as stack:
        stack.callback(grader.close)
        try:
            report = _do_stages(grader, report)
        except Raised as error:
            report = replace(report, outcome="crashed", message=crash_text(error))
        except Died as death:
            report = replace(report, outcome=death.reason, message=f"the program {death}")
        hosts = grader.hosts
        return replace(
            report,
            output="".join(host.printed for host in grader.my_hosts)[-2000:],
            isolation=hosts[0].isolation if hosts else (),
            missing=hosts[0].missing if hosts else (),
            seconds=time.monotonic() - started,
        )


def _do_stages(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    job = grader.job
    if "measure" in job.stages:
        return measure_once(grader, report)
    if "train" in job.stages:
        report = train_once(grader, report)
    stage = grader.program.stage(job.open_stage)
    if "stage" in job.stages and stage:
        result = grader.grade_stage(stage)
        report = replace(report, stage=result, outcome="passed" if result.passed else "failed")
        if late := next((c for c in result.checks if c.reason == "timeout"), None):
            return replace(report, outcome="timeout", message=late.message)  # no time is left
    if "material" in job.stages:
        report = replace(report, notes=tuple(constant_answers(grader.right().observed)))
    if "grade" in job.stages:
        report = _grade(grader, report)
    if "goals" in job.stages and report.passed:
        goals = tuple(grader.reach_goals())
        missed = [goal for goal in goals if goal.outcome != "passed"]
        outcome: GradeOutcome = "failed" if missed else "passed"
        message = f"{missed[0].title}: {missed[0].message}" if missed else report.message
        report = replace(report, goals=goals, outcome=outcome, message=message)
    if "goals" in job.stages and report.outcome == "passed":
        return replace(report, bugs=tuple(BugResult(id=b, fixed=True) for b in grader.bugs))
    if "bugs" in job.stages and report.parts:
        report = replace(report, bugs=grader.tell_bugs())
    return report


def _grade(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    if changed := _changed_constants(grader):
        return replace(report, outcome="failed", message=changed)
    parts = _first_failure(grader) if grader.job.first_failure else _all_parts(grader)
    wrong = sorted(
        (part for part in parts if part.outcome != "passed"),
        key=lambda part: (not part.reason, part.outcome != "failed"),
    )
    if not wrong:
        return replace(report, outcome="passed", parts=tuple(parts))
    first, message = wrong[0], wrong[0].message
    outcome: GradeOutcome = "failed" if first.outcome == "failed" else "cannot-compare"
    outcome = first.reason or outcome
    return replace(report, outcome=outcome, parts=tuple(parts), message=message)


def _all_parts(grader: ProgramGrader) -> list[PartResult]:
    """The units, then the entries. Where an entry is wrong, the round is rejected anyway, and
    units are looked at quickly, to tell what is to blame."""
    entries = list(grader.grade_entries())
    units = grader.grade_units(quick=any(part.outcome == "failed" for part in entries))
    units = grader.count_parameters(units)
    if any(unit.outcome != "passed" or unit.message for unit in units):
        entries = grader.blame_entries(entries)
    return [*units, *entries]


def _first_failure(grader: ProgramGrader) -> list[PartResult]:
    """The parts up to the first that is wrong, the cheapest ones first."""
    parts: list[PartResult] = []
    order = _cheapest_first(grader.right().cases)
    for part in chain(grader.grade_entries(order), grader.each_unit()):
        parts.append(part)
        if part.outcome == "failed":
            return parts
    return grader.count_parameters(parts)


def _changed_constants(grader: ProgramGrader) -> str:
    """What to say where a declared constant has another value."""
    right = grader.right().constants
    grader.mine.ask("evaluate_expressions", expressions=[])
    for name, value in grader.mine.constants.items():
        if value != right[name]:
            return f"{name} is {value}, but was {right[name]} as given: put it back"
    return ""


# ---------------------------------------------------------------- one run


def measure_once(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    """Train the candidate's program as its user would, and measure what may be asked for."""
    right, side = grader.right(), Side(grader, grader.job.files, exact=False, mine=True)
    steps = grader.job.steps or right.steps
    answer = side.ask("measure_training", seed=0, steps=steps)
    sample = side.ask("sample_text", expression=grader.program.training.sample)["text"]
    run = TrainingRun(
        steps=steps,
        losses=tuple(answer["losses"]),
        expected_start=math.log(right.classes),
        seconds=0.0,
        sample=sample,
        evidence=answer["evidence"],
    )
    return replace(report, outcome="passed", run=run)


def train_once(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    """Train the candidate's program as its user would, and look at its goals."""
    right, side = grader.right(), Side(grader, grader.job.files, exact=False, mine=True)
    steps = grader.job.steps or right.steps
    answer = side.ask("train_model", seed=0, steps=steps)
    losses = answer.get("losses") or answer["backward_losses"]
    failed = next((n for n, loss in enumerate(losses, 1) if not math.isfinite(loss)), None)
    run = TrainingRun(
        steps=steps,
        losses=tuple(losses),
        expected_start=math.log(right.classes),
        seconds=answer["seconds"],
        failed_step=failed,
    )
    if ended := answer.get("ended"):
        failed = len(answer["backward_losses"]) + 1
        run = replace(run, failed_step=failed, error=crash_text(Raised(ended)))
        run = replace(run, trace=_trace_step(grader, steps, failed))
        return replace(report, outcome="crashed", message=run.error, run=run)
    if failed:
        run = replace(run, trace=_trace_step(grader, steps, failed))
    try:
        sample = side.ask("sample_text", expression=grader.program.training.sample)["text"]
        run = replace(run, sample=sample)
        goals = tuple(grader.goal_result(side, goal) for goal in grader.program.goals)
    except Raised as raised:
        run = replace(run, error=crash_text(raised))
        return replace(report, outcome="crashed", message=run.error, run=run)
    reached = all(goal.outcome == "passed" for goal in goals)
    return replace(report, outcome="passed" if reached else "failed", run=run, goals=goals)


def _trace_step(grader: ProgramGrader, steps: int, step: int) -> Trace | None:
    """The step that failed, in a fresh process; None where it cannot be repeated."""
    side = Side(grader, grader.job.files, exact=False)
    try:
        text = side.ask("trace_training_step", seed=0, steps=steps, step=step)["trace"]
        return from_json(Trace, text[:LONGEST])
    except (Raised, Died, ValueError):
        return None


# ---------------------------------------------------------------- small things


def _cheapest_first(parts: Iterable[str]) -> list[str]:
    """The order when many programs are compared: training takes the longest."""
    return sorted(parts, key=lambda part: part == "training")


def unit_outcome(report: Report) -> tuple[Outcome, str, Reason]:
    """Whether a unit is right, and why not: the first reason, and how it ended."""
    if report.outcome != "ok":
        return "failed", report.message, REASONS.get(report.outcome, "crashed")
    failed: list[CheckResult] = [c for c in report.checks if c.outcome == "failed"]
    errors = [c for c in report.checks if c.outcome == "error"]
    if failed or errors:
        first = (failed or errors)[0]
        reason = REASONS.get(first.reason, "")
        return ("failed" if failed else "error"), f"{first.id}: {first.message}", reason
    return "passed", "", ""


def _count(weights: Weights, tied: Mapping[str, str]) -> int:
    """How many numbers the parameters hold, a tied one counted once."""
    return sum(tensor.numel() for name, tensor in weights.items() if name not in tied)


def _add_noise(weights: Weights, tied: Mapping[str, str], dice: Dice) -> dict[str, Tensor]:
    """The weights with noise, the same under each name of a tied one."""
    noisy = {
        name: tensor.double() + dice.normal(tuple(tensor.shape), NOISE).double()
        for name, tensor in weights.items()
        if name not in tied
    }
    return noisy | {name: noisy[first] for name, first in tied.items()}


def _left_where_untouched(
    known: Mapping[str, bool | None], untouched: Collection[str]
) -> dict[str, bool | None]:
    return {b: False if fixed is None and b in untouched else fixed for b, fixed in known.items()}


def _subsets(known: Mapping[str, bool | None]) -> list[tuple[str, ...]]:
    """Every choice of bugs that may be left, after what is known of them."""
    still = {bug for bug, fixed in known.items() if fixed is False}
    open_ = [bug for bug, fixed in known.items() if fixed is None]
    chosen = chain.from_iterable(combinations(open_, n) for n in range(len(open_) + 1))
    return [tuple(b for b in known if b in still or b in left) for left in chosen]


def _nearest(
    choices: Sequence[tuple[str, ...]], program: Program, files: Files
) -> list[tuple[str, ...]]:
    """The choices of bugs with which the right program differs from these files in fewest lines."""
    changes = {left: count_changed_lines(compose(program, left), files) for left in choices}
    return [left for left in choices if changes[left] == min(changes.values())]


def _agreed(bug: str, matches: Sequence[tuple[str, ...]]) -> bool | None:
    """Whether all choices that explain the program say the same of a bug."""
    told = {bug not in left for left in matches}
    return told.pop() if len(told) == 1 else None

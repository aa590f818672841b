"""Grade a program: its model's units alone, its training half beside the right program's, goals.

Both programs start from the same weights, count in float64 and drop no values, so two right ones
agree however they are written. Where a half is wrong, it is tried with the right other half
(substitution), so that one mistake is counted once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeVar

from torch import Tensor

from attnlab.candidate.host import Died, Host, LastingHost, Spawn, checked_answer
from attnlab.catalogue.weight_expressions import Misfit
from attnlab.grading.observations import (
    TITLES,
    Cases,
    Observed,
    Rename,
    Weights,
    compare,
    compare_runs,
    failure_reason,
    observe,
    observe_part,
)
from attnlab.grading.pipeline import run_job
from attnlab.grading.program_sources import files_behind, unit_code, uses
from attnlab.grading.stages import cannot_compare, grade_stage, right_values
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.reference import FileReference, ReferenceCache
from attnlab.probe.weights.layouts import Indices, map_weights, weight_indices
from attnlab.probe.weights.match import MatchContext, find_map, shapes_of
from attnlab.records import CheckResult, Job, Limits, Outcome, Report
from attnlab.records.program import Files, PartResult, ProgramJob, Stage, StageResult, Unit

T = TypeVar("T")
NOISE = 0.02  # added to the right program's first weights: no bias is 0, no gain is 1
Reason = Literal["", "crashed", "timeout", "memory"]
REASONS: dict[str, Reason] = {r: r for r in ("crashed", "timeout", "memory")}
# The checks that see most wrong units; a repaired one is made by these and by what it failed.
TELLING = ("output-shape", "matches-reference", "train-mode", "no-hidden-state")
RUSH = 2.0  # seconds before the deadline in which each unit has a process, and an alarm, of its own


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

    @property
    def bugs(self) -> list[str]:
        """The bugs of the round, without its decoys."""
        return [b for b in self.job.bugs if not self.program.patches[b].decoy]

    def with_files(self, files: Files) -> ProgramGrader:
        """A grader of other files, for which this one waits, without an open stage."""
        job = replace(self.job, files=files, open_stage="")
        other = ProgramGrader(job, self.spawn, self.references, self.known)
        other.hosts, other.deadline = self.hosts, self.deadline
        return other

    def spawn_host(self) -> Host:
        limits = self.job.limits
        if not {"train", "measure"}.isdisjoint(self.job.stages):  # one call: its alarm must ring
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
        return self.once(tuple(self.program.files.values()), self._observe_right)

    def once(self, what: Hashable, find: Callable[[], T]) -> T:
        """What was found of this program with this seed, in this grade or in an earlier one."""
        key = f"{self.job.seed} {self.program.slug} {hash(what)}"
        if key not in self.known:
            self.known[key] = find()
        found: T = self.known[key]
        return found

    def _observe_right(self) -> RightProgram:
        training, side = self.program.training, Side(self, self.program.files)
        inputs = [*training.prompts, *training.items]
        steps, classes, *given = side.ask(
            "evaluate_expressions", expressions=[training.steps, training.classes, *inputs]
        )["values"]
        known = dict(zip(inputs, given, strict=True))
        drawn = side.ask("initial_weights", seed=self.job.seed)
        texts = {"generation": training.prompts, "prediction": training.items}
        cases = {part: [known[text] for text in texts.get(part, ())] for part in training.parts}
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
        alone = [(unit, self.grade_unit(unit, (), quick)) for unit in self.program.units]
        wrong = [unit for unit, result in alone if result.outcome == "failed"]
        return [self._blamed(unit, result, wrong) for unit, result in alone]

    def _blamed(self, unit: Unit, alone: PartResult, wrong: Sequence[Unit]) -> PartResult:
        others = [u for u in wrong if u.id != unit.id and uses(self.program.files, unit, u)]
        if alone.outcome != "failed" or not others:
            return alone
        failed = tuple(check.id for check in alone.checks if check.outcome == "failed")
        repaired = self.grade_unit(unit, others, quick=True, only=(*TELLING, *failed))
        if repaired.outcome != "passed":
            return alone
        names = " and ".join(other.class_name for other in others)
        return replace(repaired, message=f"right with the right {names} in it")

    def grade_unit(
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
        told = PartResult(id=unit.id, title=unit.title, outcome=outcome, checks=report.checks)
        return replace(told, message=message, reason=reason)

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
            if refusal:
                yield PartResult(id=part, title=TITLES[part], outcome="error", message=refusal)
            else:
                yield self._compared(part, self.mine, weights, self.in_my_names)

    def _compared(self, part: str, side: Side, weights: Weights, rename: Rename) -> PartResult:
        """How a part differs from the right program's, and how it ended where it did not."""
        right = self.right()

        def differs(number: int, run: Any) -> str:
            return compare_runs(run, right.observed["training"]["runs"][number], rename)

        seen = observe_part(part, side, weights, right.cases, enough=differs)
        message = compare(part, {part: seen}, right.observed, rename)
        told = PartResult(id=part, title=TITLES[part], outcome="failed" if message else "passed")
        return replace(told, message=message, reason=failure_reason(seen))

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
        if side.files != self.program.files:
            part = self._compared(part.id, side, self.right().weights, dict)
            if part.outcome != "passed":
                return part
        return replace(part, outcome="passed", message="right with the right model", reason="")

    def _can_substitute(self) -> bool:
        """Not in a stage: the right model of before has not what the loop may ask of it by now."""
        return self.program.training.files != set(self.program.edit) and not self.job.open_stage

    # ------------------------------------------------------------ stages

    def grade_stage(self, stage: Stage) -> StageResult:
        """The checks of the stage that is open, with the right program's weights."""
        weights, refusal = self.my_weights()
        if refusal:
            return cannot_compare(stage, refusal)
        right, side = self.right().weights, Side(self, stage.solution)
        wanted = self.once(repr(stage), lambda: right_values(side, right, stage))
        asked = [n for n, name in enumerate(wanted, 1) if name in self.job.checks]
        first = dict(islice(wanted.items(), max(asked, default=len(wanted))))
        return grade_stage(self.mine, weights, stage, first)


# ---------------------------------------------------------------- small things


def cheapest_first(parts: Iterable[str]) -> list[str]:
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
        place = f"{first.file}:{first.line}: " if reason and first.line else ""
        return "failed" if failed else "error", place + (first.message or first.title), reason
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

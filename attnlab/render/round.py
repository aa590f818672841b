"""Pages about a round: the folder written, a training run, a grade, and how it ended."""

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import replace

from attnlab.records import plain, record
from attnlab.records.program import GoalResult, PartResult, Program, ProgramReport, TrainingRun
from attnlab.render.bars import sparkline
from attnlab.render.challenge import show_hints
from attnlab.render.findings import show_output
from attnlab.render.fold import View
from attnlab.render.grade import WORDS as GRADE_WORDS
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, level_marks, plural
from attnlab.render.stage import StageSolutionPage, show_stage, stage_document
from attnlab.render.steps import show_table

LAST_ROWS = 24  # of a step that crashed
WORDS = GRADE_WORDS | {"failed": "not yet"}


def show_head(program: Program, screen: Screen, folder: str = "") -> None:
    screen.say((program.title, "title"))
    words = f"level {level_marks(screen.marks, program.level)}  {program.minutes} minutes"
    screen.say((program.slug, "name"), f"  {words}", f"  {folder}" if folder else "")


def show_task(program: Program, bugs: Sequence[str], screen: Screen) -> None:
    """What one sees of a round, or the command that shows it, and what is to be done."""
    show_head(program, screen)
    drawn = f"Drawn just now: `attnlab run {program.name}` shows its loss, or where it stops."
    screen.heading("symptom", program.symptom_of(bugs) or drawn)
    screen.heading("task", program.task)
    screen.gap()


def grade_word(report: ProgramReport) -> str:
    """The outcome of a grade in a word or two."""
    if report.outcome == "passed" and not report.passed:
        return "the bugs are done, the stage not yet"
    return WORDS.get(report.outcome, report.outcome)


def count_right(report: ProgramReport) -> str:
    """`2 of 4 bugs gone, 5 of 6 parts right`."""
    if not report.parts:
        return "nothing could be graded"
    bugs = f"{report.bugs_gone} of {plural(len(report.bugs), 'bug')} gone, " if report.bugs else ""
    missed = [goal.title for goal in report.goals if goal.outcome == "failed"]
    goals = f", but it does not reach its {'goals' if missed[1:] else 'goal'}: {'; '.join(missed)}"
    right = f"{report.parts_right} of {plural(len(report.parts), 'part')} right"
    return f"{bugs}{right}{goals if missed else ''}"


def show_count(report: ProgramReport, screen: Screen) -> None:
    """What the counts of a grade that did not pass mean."""
    screen.gap()
    if report.new_fault:
        screen.say(
            "every bug of the round is gone: what is wrong now came with one of your changes",
            indent=2,
        )
        return
    wrong = sum(bug.changed and not bug.fixed for bug in report.bugs)
    hidden = sum(bug.fixed is None and not bug.changed for bug in report.bugs)
    for count, said in (
        (wrong, "where you changed something: what the program does there is still wrong"),
        (hidden, "where you changed nothing: a change elsewhere hides whether that was enough"),
    ):
        if count:
            screen.hang("  ", f"{plural(count, 'bug')} {said}")
    if not report.goals:
        screen.say(
            "a part is a class or function by itself, or what training, evaluation or generation "
            "does; a part with several bugs is right once all of them are gone, and goals come "
            "last",
            indent=2,
        )


@record
class RoundStartPage:
    """A folder that was written for the user."""

    program: Program
    folder: str
    kept: tuple[str, ...]
    round: tuple[str, ...]  # ids of its bugs and decoys
    file: str = ""  # the only one that was written

    @property
    def bugs(self) -> int:
        return sum(not self.program.patches[bug].decoy for bug in self.round)

    def show(self, screen: Screen) -> None:
        program = self.program
        if self.file:
            screen.say((f"{screen.marks.ok} ", "ok"), f"put back {self.folder}/{self.file}")
            for kept in self.kept:
                screen.say(f"your file is kept as {kept}", indent=2)
            screen.do_next(f"attnlab grade {program.name}")
            return
        show_task(program, self.round, screen)
        wrote = ", ".join(program.edit)
        screen.say((f"{screen.marks.ok} ", "ok"), "wrote ", (f"{self.folder}/", "title"))
        screen.say(f"to fix: {wrote} ({plural(self.bugs, 'bug')})", indent=2)
        screen.say(f"given: {', '.join(program.given)}", indent=2)
        for kept in self.kept:
            screen.say(f"the old file is kept as {kept}", indent=2)
        screen.do_next(f"attnlab run {program.name} trains it; attnlab grade {program.name} grades")

    def document(self) -> Document:
        return {
            "challenge": self.program.slug,
            "folder": self.folder,
            "files": [self.file] if self.file else [*self.program.edit, *self.program.given],
            "kept": list(self.kept),
            "bugs": self.bugs,
        }


@record
class RoundRunPage:
    """One training run: the loss, the goals, a sample."""

    program: Program
    folder: str
    report: ProgramReport
    notes: tuple[str, ...]
    next: str
    round: tuple[str, ...]  # ids of its bugs and decoys, where they are known
    stage: str = ""  # that is open after the bugs

    def show(self, screen: Screen) -> None:
        program = self.program
        show_head(program, screen, self.folder)
        if stage := program.stage(self.stage):
            screen.heading(
                f"stage {stage.id}", f"{stage.title}. A run trains only; grades check it."
            )
        elif self.round and (symptom := program.symptom_of(self.round)):
            screen.heading("symptom", symptom)
        if self.report.run:
            _show_run(program, self.report.run, self.folder, screen)
        else:
            screen.gap()
            screen.say((f"{screen.marks.bad} {self.report.outcome}: ", "bad"), self.report.message)
        show_goals(self.report.goals, screen)
        if self.report.goals:
            screen.hang("  ", "measured by attnlab in eval mode; what the file printed is its own")
        show_output(self.report.output, screen)
        _show_notes(self.notes, screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        report = self.report
        return {
            "challenge": self.program.slug,
            "file": self.folder,
            **pick(report, "outcome", "message", "run", "goals"),
            "notes": list(self.notes),
            **pick(report, "isolation", "seconds", "output"),
            "next": self.next,
        }


@record
class RoundGradePage:
    """A grade of a round: how many parts are right; which, and which bugs, once it has ended."""

    program: Program
    folder: str
    report: ProgramReport
    ended: bool
    notes: tuple[str, ...]
    next: str

    @property
    def message(self) -> str:
        """What ended the program, or why nothing could be graded."""
        of_a_part = self.report.outcome == "failed" and self.report.parts  # told with its part
        return "" if of_a_part or self.report.outcome == "passed" else self.report.message

    def head(self, screen: Screen) -> tuple[str, str]:
        return screen.verdict(self.report.passed, grade_word(self.report))

    def show(self, screen: Screen) -> None:
        report, passed, (head, style) = self.report, self.report.passed, self.head(screen)
        screen.say((f"{head}: {count_right(report)}", style))
        screen.say((self.program.slug, "name"), f"  {self.folder}", indent=2)
        if self.message:
            screen.say(self.message, indent=2)
        if self.ended:
            show_goals(report.parts, screen, "parts")
        show_goals(report.goals, screen)
        show_stage(self.program, report, screen)
        if not passed and report.parts and not report.stage:
            show_count(report, screen)
        if self.ended:
            _show_bugs(self.program, report, screen)
        _show_notes(self.notes, screen)
        if not report.parts:
            show_output(report.output, screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        report = self.report
        shown = {
            "challenge": self.program.slug,
            "file": self.folder,
            "outcome": report.outcome,
            "score": report.score,
            "parts_right": report.parts_right,
            "parts": len(report.parts),
            "bugs_gone": report.bugs_gone if report.bugs else None,
            "goals": plain(report.goals),
            **pick(self, "message", "notes"),
            **pick(report, "isolation", "seconds", "seed"),
            "next": self.next,
        }
        shown |= stage_document(report.stage)
        if self.ended:
            shown |= {"part_results": plain(report.parts), "bugs": plain(report.bugs)}
        return shown


@record
class RoundHintPage:
    """The hints of a round so far: of one bug after the other, the newest last."""

    program: Program
    shown: tuple[tuple[str, str], ...]  # a heading and a text for each
    more: bool
    cost: str = ""  # what the hints so far do to the rating of an interview
    passed: bool = False  # what they are about
    name: str = ""  # of the round in this folder

    def show(self, screen: Screen) -> None:
        show_head(self.program, screen)
        show_hints(self.shown, self.more, screen)
        if not self.more:
            screen.gap()
            screen.say(("There is no further hint.", "warn"))
        if self.cost:
            screen.gap()
            screen.say((self.cost, "warn"))
        if self.passed:
            screen.do_next("it has passed already: attnlab interview status shows what is left")
        else:
            screen.do_next(f"fix it, then attnlab grade {self.name}")

    def document(self) -> Document:
        return {
            "challenge": self.program.slug,
            "cost": self.cost,
            "hints": [text for _, text in self.shown],
            "more": self.more,
        }


@record
class RoundSolutionPage:
    """Every bug of a round: what is to be changed, why, and how one finds it."""

    program: Program
    bugs: tuple[str, ...]
    solved: bool = False
    stage: StageSolutionPage | None = None  # that is open after the bugs

    def show(self, screen: Screen) -> None:
        show_head(self.program, screen)
        for patch in (self.program.patches[bug] for bug in self.bugs):
            screen.gap()
            kind = "no bug: right code that looks wrong" if patch.decoy else patch.category
            screen.say((patch.id, "title"), f"  {kind}")
            for edit in patch.edits:
                screen.say((edit.file, "name"), indent=2)
                styles = {"-": "red", "+": "green"}
                for line in _changed_lines(edit.new, edit.new if patch.decoy else edit.old):
                    screen.message(f"  {line[:2]}", (line[2:], styles.get(line[0], "")))
            find = f"\n\nTo find it: {patch.find}" * bool(patch.find)
            screen.prose(patch.why + find, indent=2)
        if self.stage:
            screen.gap()
            self.stage.show(screen)
        elif not self.solved:
            screen.do_next(f"make the changes yourself, then attnlab grade {self.program.name}")

    def document(self) -> Document:
        patches = [self.program.patches[bug] for bug in self.bugs]
        stage = self.stage.document() if self.stage else {}
        return {"challenge": self.program.slug, "bugs": plain(patches)} | stage


# ---------------------------------------------------------------- parts of pages


def _changed_lines(before: str, after: str) -> list[str]:
    """Lines of a diff, each with "- ", "+ " or "  " before it."""
    lines = difflib.ndiff(before.strip("\n").splitlines(), after.strip("\n").splitlines())
    return [line for line in lines if not line.startswith("?")]


def _show_run(program: Program, run: TrainingRun, folder: str, screen: Screen) -> None:
    screen.gap()
    steps = f"{len(run.losses)} of {run.steps} steps, as python train.py takes them"
    screen.say(("training", "title"), f"  {steps}, {run.seconds:.1f} s")
    if run.losses:
        curve = sparkline(run.losses, screen)
        screen.say("  loss  ", f"{run.losses[0]:.3f} ", (curve, "name"), f" {run.losses[-1]:.3f}")
        classes = round(math.exp(run.expected_start))
        guessing = f"guessing among {classes} classes gives ln {classes} = {run.expected_start:.3f}"
        screen.say(f"it begins at {run.losses[0]:.3f}; {guessing}", indent=2)
    if run.failed_step:
        what = run.error or "the loss is not a finite number"
        screen.say((f"{screen.marks.bad} step {run.failed_step}: ", "bad"), what, indent=2)
    elif run.error:
        screen.say((f"{screen.marks.bad} the sample: ", "bad"), run.error, indent=2)
    if run.sample:
        called = re.search(r"train\.(\w+)\(model", program.training.sample)
        head = f"train.{called[1]} gives  " if called else "sample  "
        screen.hang(f"  {head}", (run.sample, "name"))
    if run.trace:
        screen.heading(f"step {run.failed_step}, operation by operation")
        left = max(len(run.trace.ops) - LAST_ROWS, 0)
        if left:
            shown = f"attnlab trace {folder.removeprefix('./')}train.py --step {run.failed_step}"
            how = f": {shown}" if folder.endswith("/") else ""  # else there is no file to name
            screen.say((f"{plural(left, 'row')} before these{how}", "aside"))
        show_table(replace(run.trace, ops=run.trace.ops[left:]), screen, View(file=folder))


def show_goals(
    results: Sequence[PartResult | GoalResult], screen: Screen, title: str = "goals"
) -> None:
    if results:
        screen.heading(title)
    for result in results:
        mark, style = screen.look(result.outcome)
        told = f": {result.message}" if result.message else ""
        screen.hang((f"  {mark} ", style), result.title + told)


def _show_bugs(program: Program, report: ProgramReport, screen: Screen) -> None:
    looks = {
        True: (screen.marks.ok, "ok", "gone"),
        False: (screen.marks.bad, "bad", "still there"),
        None: (screen.marks.unsure, "warn", "cannot be told from what the program does"),
    }
    for result in report.bugs:
        mark, style, word = looks[result.fixed]
        bug = program.patches[result.id]
        screen.gap()
        screen.say((f"{mark} ", style), (bug.id, "title"), f"  {word}")
        screen.prose(f"{bug.why}\n\nTo find it: {bug.find}", indent=4)


def _show_notes(notes: Sequence[str], screen: Screen) -> None:
    if notes:
        screen.gap()
    for note in notes:
        screen.hang((f"{screen.marks.unsure} ", "warn"), note)

"""Pages about a stage, and its part of a grade and of a scorecard."""

from collections.abc import Sequence
from difflib import unified_diff

from rich.text import Text

from attnlab.records import record
from attnlab.records.program import Program, ProgramReport, Stage, StageCheck, StageResult
from attnlab.records.scorecard import StageCard
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, plural

STATES = {"passed": "passed", "failed": "not yet", "open": "opened, never graded"}


@record
class StageStartPage:
    """A stage that was opened, and what it asks."""

    program: Program
    stage: Stage
    folder: str
    kept: tuple[str, ...]

    @property
    def next(self) -> str:
        return f"attnlab grade {self.folder} grades it together with the bugs"

    @property
    def parts(self) -> str:
        """What grades go on to ask of the classes that are graded alone."""
        names = ", ".join(f"`{unit.class_name}`" for unit in self.program.units)
        keep = (
            "The program without the stage must stay right: grades go on to build and call "
            f"{names} alone, with the arguments that each takes now. Whatever you add to a "
            "signature needs a default that changes nothing."
        )
        before = [one for one in self.program.stages if one.order < self.stage.order]
        again = " What earlier stages asked is not checked again." if before else ""
        return keep + again if names else ""

    def show(self, screen: Screen) -> None:
        program, stage = self.program, self.stage
        number = program.stages.index(stage) + 1
        screen.say((stage.title, "title"))
        usual = f"meant to take {plural(stage.minutes, 'minute')}, no limit"
        place = f"stage {number} of {len(program.stages)}  {usual}"
        screen.say((f"{program.slug} {stage.id}", "name"), f"  {place}")
        screen.heading("task", stage.task)
        screen.prose(self.parts, indent=2)
        screen.heading("checked")
        for check in stage.checks:
            screen.hang(f"  {screen.marks.note} ", check.title)
        screen.gap()
        given = f", beside {', '.join(stage.given)}, which is given" if stage.given else ""
        screen.say((f"{screen.marks.ok} ", "ok"), f"write it into {self.folder}/{given}")
        for kept in self.kept:
            screen.say(f"the old file is kept as {kept}", indent=2)
        screen.do_next(self.next)

    def document(self) -> Document:
        stage = self.stage
        return {
            "challenge": self.program.slug,
            "stage": stage.id,
            **pick(stage, "title", "minutes", "task"),
            "parts": self.parts,
            "checks": [pick(check, "id", "title") for check in stage.checks],
            "folder": self.folder,
            "given": list(stage.given),
            **pick(self, "kept", "next"),
        }


@record
class StageSolutionPage:
    """One right way to write a stage, as changes of the right program."""

    program: Program
    stage: Stage
    solved: bool = False

    @property
    def changes(self) -> dict[str, list[str]]:
        """The lines of a diff, by file."""
        before, after = self.program.files, self.stage.solution
        lines = {
            file: list(unified_diff(before[file].splitlines(), after[file].splitlines(), n=2))[2:]
            for file in self.program.edit
        }
        return {file: found for file, found in lines.items() if found}

    def show(self, screen: Screen) -> None:
        screen.say((self.stage.title, "title"))
        screen.say((f"{self.program.slug} {self.stage.id}", "name"), "  one right way of several")
        styles = {"-": "red", "+": "green", "@": "aside"}
        for file, lines in self.changes.items():
            screen.gap()
            screen.say((file, "name"), indent=2)
            for line in lines:
                text = line.rstrip() if line[0] != "@" else screen.marks.dots
                screen.message("  ", (text, styles.get(line[0], "")))
        if not self.solved:
            screen.do_next(f"write it yourself, then attnlab grade {self.program.name}")

    def document(self) -> Document:
        stage = self.stage
        files = {file: stage.solution[file] for file in self.changes}
        return {"challenge": self.program.slug, "stage": stage.id, "files": files}


def show_stage(program: Program, report: ProgramReport, screen: Screen) -> None:
    """The checks of the stage that is open, in a grade, and which parts were right before it."""
    result = report.stage
    if result is None:
        return
    broken = [part for part in report.parts if part.outcome != "passed"]
    if broken:
        screen.heading("parts that were right before the stage")
    for part in broken:
        screen.hang((f"  {screen.marks.bad} ", "bad"), f"{part.title}: {part.message}")
    screen.gap()
    passed = sum(check.outcome == "passed" for check in result.checks)
    counted = f"{passed} of {plural(len(result.checks), 'check')} passed"
    screen.say((f"stage {result.id}", "title"), f"  {counted}")
    told: set[str] = set()
    for check in result.checks:
        mark, style = screen.look(check.outcome)
        screen.hang((f"  {mark} ", style), check.title)
        if check.message:
            screen.hang("      ", "the same" if check.message in told else check.message)
            told.add(check.message)
    stage, failed = program.stage(result.id), result.failed
    if stage and failed and failed.reason != "too-much" and not broken:
        _show_check(next(c for c in stage.checks if c.id == failed.id), screen)


def _show_check(check: StageCheck, screen: Screen) -> None:
    """What a check that failed runs: in the folder, with `model` made, it can be tried by hand."""
    from attnlab.render.code import highlight_python

    theirs = f"for\n{check.right}" if check.right else "for the same"
    code = f"{check.setup.strip()}\n{check.value}".strip()
    screen.heading("what the first check that failed compares")
    code += f"\n# beside a right program with the same weights (`model`, `fill`), {theirs}"
    for line in highlight_python(code).split():
        screen.print(Text("  ").append_text(line), soft_wrap=True)


def stage_document(result: StageResult | None) -> Document:
    """The same for scripts; empty where no stage is open."""
    if result is None:
        return {}
    checks = [pick(check, "id", "title", "outcome", "message") for check in result.checks]
    outcome = "passed" if result.passed else "failed"
    return {"stage": pick(result, "id", "title") | {"outcome": outcome, "checks": checks}}


def next_stage(program: Program, report: ProgramReport, skipped: bool = False) -> str:
    """How to open the stage that comes next; "" where none does, or not yet. `skipped`: each has a
    folder of its own."""
    ids = [stage.id for stage in program.stages]
    done = ids.index(report.stage.id) + 1 if report.stage else 0
    if not report.passed or done == len(ids):
        return ""
    if skipped:
        return f"attnlab interview stage {program.name}/{ids[done]} --skip-bugs goes on; "
    return f"attnlab interview stage goes on with {ids[done]}, {done + 1} of {len(ids)}; "


def show_stage_cards(cards: Sequence[StageCard], screen: Screen) -> None:
    """What became of each stage that was opened, and which were not."""
    for card in cards:
        if card.outcome != "locked":
            _show_card(card, screen)
    if locked := [card.id for card in cards if card.outcome == "locked"]:
        screen.gap()
        screen.say(f"{screen.marks.skip} stages not opened: {', '.join(locked)}")


def _show_card(card: StageCard, screen: Screen) -> None:
    screen.gap()
    mark, style = screen.look(card.outcome)
    screen.say((f"{mark} ", style), (f"stage {card.id}", "title"), f"  {STATES[card.outcome]}")
    screen.say(card.title, indent=4)
    if card.outcome != "open" or card.seconds:
        usual = plural(card.minutes, "minute")
        clock = f"{clock_of(card.seconds)} since it was opened (meant to take {usual}, no limit)"
        graded = f"graded {plural(card.grades, 'time')}, submits included"
        counts = f"{graded}, {plural(card.hints, 'hint')}"
        screen.say(f"{clock}, {counts}", indent=4)
    if card.message:
        screen.hang("    ", f"it failed at: {card.message}")


def clock_of(seconds: float, minutes: int = 0) -> str:
    """`12:30`, in minutes and seconds, or `12:30 of 60 minutes`."""
    limit = f" of {plural(minutes, 'minute')}" if minutes else ""
    return f"{int(seconds // 60)}:{int(seconds % 60):02}{limit}"

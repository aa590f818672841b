"""Two implementations side by side: the steps that pair up, the first that do not, and why."""

from collections.abc import Iterator

from rich.text import Text

from attnlab.records import plain, record
from attnlab.records.diagnosis import Diagnosis, DiffReport, PairedStep
from attnlab.render.json import Document
from attnlab.render.screen import Screen, bare_table, plural, truncate

AROUND = 2  # equal steps that are shown before the first that differs
MAPPED = 6  # weights, without --all-rows
GUESSED = (
    "This is a guess by names, shapes and values: nothing proves which weight of yours is which "
    "of the reference's. Where it is wrong, so is what is said above; --weights FILE settles it."
)
MOST = 12  # steps that differ, without --all-rows
HEADS = {
    "same": ("ok", "ok", "the outputs are equal"),
    "different": ("bad", "bad", "the outputs differ"),
    "cannot-compare": ("empty", "warn", "cannot be compared"),
}
PARTS = {"output": "outputs", "gradient": "gradients", "weights": "checkpoints"}
NOUNS = {"output": ("value", "the output"), "gradient": ("gradient", "all gradients")}


@record
class DiffPage:
    target: str
    reference: str
    outcome: str
    report: DiffReport
    reference_says: str = ""  # how it was built, where that was guessed
    all_rows: bool = False
    next: str = ""

    def show(self, screen: Screen) -> None:
        mark, style, says = HEADS.get(self.outcome, ("bad", "bad", self.outcome))
        head = f"{getattr(screen.marks, mark)} {says}".replace("outputs", PARTS[self.report.part])
        much = f"  by up to {self.report.max_error:.3g}" if self.report.max_error else ""
        screen.say((head, style), much if self.outcome == "different" else "")
        screen.say((self.target, "name"), "  beside  ", (self.reference, "name"), indent=2)
        if self.reference_says:
            screen.say((f"reference {self.reference_says}", "aside"), indent=2)
        if self.report.loaded:
            screen.say((f"sizes: {self.report.loaded}", "aside"), indent=2)
        if self.report.message:
            screen.hang("  ", self.report.message)
        if self.report.hint:
            screen.say(self.report.hint, indent=2)
        for each in self.report.diagnosis:
            screen.gap()
            show_diagnosis(each, screen)
        known = self.report.diagnosis or self.report.hint or self.report.part == "weights"
        if self.outcome == "different" and not known:
            what, goal = NOUNS[self.report.part]
            screen.gap()
            screen.prose(
                f"No single line could be named: no {what} of the reference, put in place of one "
                f"of yours, makes {goal} right."
            )
        steps = self.outcome != "same" and self.report.part == "output"
        if steps or self.all_rows:
            show_steps(self.report, screen, self.all_rows)
        if self.report.weights:
            show_weights(self.report, screen, self.all_rows)
        screen.do_next(self.next)

    def document(self) -> Document:
        return {
            "target": self.target,
            "reference": self.reference,
            "reference_says": self.reference_says,
            "outcome": self.outcome,
            "part": self.report.part,
            "max_error": self.report.max_error,
            "message": self.report.message,
            "hint": self.report.hint,
            "diagnosis": plain(self.report.diagnosis),
            "steps": plain(self.report.steps),
            "weights": self.report.weights,
            "weights_guessed": self.report.guessed,
            "loaded": self.report.loaded,
            "next": self.next,
        }


def show_weights(report: DiffReport, screen: Screen, everything: bool = False) -> None:
    """How mine were made of the reference's, as --weights takes it."""
    weights = report.weights
    screen.heading("weights of yours by those of the reference, as --weights FILE takes them")
    if report.guessed and report.outcome == "different":
        screen.prose(GUESSED)
    shown = list(weights.items())[: None if everything else MAPPED]
    for name, said in shown:
        screen.one_line(f'  "{name}" = "{said}"')
    if len(shown) < len(weights):
        screen.say((f"  {len(weights) - len(shown)} more with --all-rows", "aside"))


def show_diagnosis(found: Diagnosis, screen: Screen) -> None:
    place = (f"{found.file}:{_span(found.line, found.end_line)}", screen.link("title", found.file))
    screen.one_line(place, f"  {found.source}")
    screen.hang(("  wrong   ", "title"), found.message)
    if found.fix:
        screen.hang(("  right   ", "title"), f"`{found.fix}`")
    elif found.their_source:
        span = _span(found.their_line, found.their_end_line)
        where = f"  ({found.their_file}:{span})" if found.their_line else ""
        screen.hang(("  right   ", "title"), f"{found.their_source}{where}")
    screen.say((_how_sure(found), "aside"), indent=2)


def _span(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else f"{first}"


def _how_sure(found: Diagnosis) -> str:
    if found.relation.startswith("gradient"):
        if found.confirmed:
            return "confirmed: once it passes on the right gradient, all are right, on two inputs"
        return "likely: other lines may be to blame"
    if found.fix and found.confirmed:
        return "confirmed: with this change alone the output is right, on two inputs"
    if found.fix:
        return "likely: with this change the output is right, but another line may be to blame"
    if found.confirmed:
        return "confirmed: with the reference's value there the output is right, on two inputs"
    return "likely: a value put there makes the output right, but other lines may be to blame"


def show_steps(
    report: DiffReport,
    screen: Screen,
    all_rows: bool = False,
    sides: tuple[str, str] = ("yours", "reference"),
) -> None:
    """The steps of both sides, paired: the first that differ, and those before them."""
    rows = list(_rows(report.steps, all_rows))
    if not rows:
        return
    screen.gap()
    table = bare_table("", sides[0], "line", "shape", sides[1], "line")
    for step in rows:
        if step is None:
            table.add_row("", screen.marks.dots)
            continue
        mark = Text("" if step.same else screen.marks.bad, style="bad")
        shape = screen.marks.times.join(map(str, step.shape))
        lines = [str(n) if n else "" for n in (step.line, step.their_line)]
        names = [truncate(n, 20, screen.marks.dots) for n in (step.mine, step.theirs)]
        table.add_row(mark, names[0], lines[0], shape, names[1], lines[1])
    screen.print(table)
    equal = sum(bool(step.mine and step.theirs) and step.same for step in report.steps)
    count = plural(sum(bool(step.mine) for step in report.steps), "step")
    whose = "of yours" if sides[0] == "yours" else sides[0]
    other = f"one of the {sides[1]}'s, up to their layout"
    screen.say((f"{equal} of {count} {whose} equal{'s' * (equal == 1)} {other}", "aside"))


def _rows(steps: tuple[PairedStep, ...], everything: bool) -> Iterator[PairedStep | None]:
    """The first steps that differ with those before them; None where some are left out."""
    if everything:
        yield from steps
        return
    wrong = [i for i, step in enumerate(steps) if not step.same]
    if not wrong:
        return
    start = max(wrong[0] - AROUND, 0)
    if start:
        yield None
    shown = [i for i in range(start, len(steps)) if i < wrong[0] or not steps[i].same]
    yield from (steps[i] for i in shown[: MOST + AROUND])
    if len(shown) > MOST + AROUND:
        yield None

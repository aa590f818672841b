"""A triage: the ranked list of causes, and what was looked at."""

from attnlab.records import Report, Suspicion, Triage, plain, record
from attnlab.render.bars import sparkline
from attnlab.render.findings import show_hidden, show_output
from attnlab.render.formats import format_place
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, plural, truncate

FULL = 5  # suspicions that are shown with their evidence and experiment


@record
class TriagePage:
    triage: Triage
    report: Report
    everything: bool = False  # notes in full as well
    hidden: int = 0  # suspicions that are left out, so as not to spoil a puzzle
    next: str = ""  # "" is the experiment of the first suspicion

    def show(self, screen: Screen) -> None:
        found = self.triage
        grave = [s for s in found.suspicions if s.severity != "note"]
        notes = [s for s in found.suspicions if s.severity == "note"]
        screen.say(("triage  ", "title"), (found.target, ""))
        self._show_end_of_script(screen)
        self._show_losses(screen)
        self._show_one_batch(screen)
        full = found.suspicions if self.everything else grave[:FULL]
        for suspicion in full:
            screen.gap()
            _show_suspicion(suspicion, screen)
        rest = [] if self.everything else [*grave[FULL:], *notes]
        if rest:
            screen.gap()
            for suspicion in rest[: 2 * FULL]:
                _show_line(suspicion, screen)
            if len(rest) > 2 * FULL:
                screen.say((f"{screen.marks.dots} {len(rest) - 2 * FULL} more: --all", "aside"))
        training = self.report.training
        late = self.report.outcome == "timeout"
        ended = found.outcome if found.outcome != "found" else "timeout" if late else "crashed"
        if ended != "nothing-found" and found.message and training is None:
            screen.gap()
            screen.say((f"{screen.marks.bad} {ended}  ", "bad"), (found.message, ""))
            show_output(self.report.output, screen)
            if full and found.advice:
                screen.hang((f"  {screen.marks.note} ", "aside"), found.advice)
        show_hidden(self.hidden, screen, "suspicion")
        screen.gap()
        _show_end(found, len(grave), len(notes), screen)
        if full and not self.next:
            first = full[0]
            place = format_place(first.file, first.line or 0) if first.file else "it"
            settle = first.experiment.replace("`", "") or f"look at {place}"
            screen.do_next(f"{settle} (attnlab explain {first.rule})")
        screen.do_next(self.next or ("" if full or training else found.advice))

    def _show_end_of_script(self, screen: Screen) -> None:
        """What ended a script that was to be watched, and what to do about it."""
        training, found = self.report.training, self.triage
        if training is None or not found.message:
            return
        when = "before its first optimizer step" if not training.steps else "while it was watched"
        screen.say((f"{screen.marks.bad} ended {when}  ", "bad"), (found.message, ""))
        show_output(self.report.output, screen)
        if found.advice:
            screen.hang((f"  {screen.marks.note} ", "aside"), found.advice)

    def _show_losses(self, screen: Screen) -> None:
        training = self.report.training
        if training is None or not training.losses:
            return
        first, last = training.losses[0], training.losses[-1]
        curve = sparkline(training.losses, screen)
        steps = plural(training.steps, "step")
        screen.say((f"{steps}  ", "aside"), f"loss {first:.4g} {curve} {last:.4g}")

    def _show_one_batch(self, screen: Screen) -> None:
        """The curve of each run over one batch."""
        training = self.report.training
        for run in training.one_batch if training else ():
            first, last = run.losses[0], run.losses[-1]
            curve = f"loss {first:.4g} {sparkline(run.losses, screen)} {last:.4g}"
            told = f"{curve}  {plural(run.steps, 'step')} with {run.how}"
            screen.hang(("one batch  ", "aside"), told)

    def document(self) -> Document:
        found, training = self.triage, self.report.training
        return {
            **pick(found, "target", "outcome", "suspicions", "looked_at", "not_looked_at"),
            "hidden_suspicions": self.hidden,
            "losses": list(training.losses) if training else [],
            "one_batch": [plain(run) for run in training.one_batch] if training else [],
            **pick(found, "message", "advice", "seconds"),
            "output": self.report.output,
        }


def _show_suspicion(suspicion: Suspicion, screen: Screen) -> None:
    look = {"error": "bad", "warning": "warn", "note": "bold"}[suspicion.severity]
    place = format_place(suspicion.file, suspicion.line or 0) if suspicion.file else ""
    screen.say(
        (f"{suspicion.rank}. {suspicion.rule}", look),
        "  ",
        (place, screen.link("name", suspicion.file)),
        (f"  {describe_likelihood(suspicion.confidence)}", "aside"),
    )
    screen.say(suspicion.message, indent=3)
    for name, text in (
        ("evidence", suspicion.evidence),
        ("means", suspicion.meaning),
        ("settles it", suspicion.experiment),
    ):
        if text:
            screen.hang((f"   {name:<10} ", "aside"), text.replace("`", ""))


def _show_line(suspicion: Suspicion, screen: Screen) -> None:
    """One line for what is less likely."""
    mark = screen.marks.note if suspicion.severity == "note" else screen.marks.warn
    place = format_place(suspicion.file, suspicion.line or 0) if suspicion.file else ""
    head = f"{mark} {suspicion.rule}  {place}  "
    screen.one_line(
        (f"{mark} {suspicion.rule}", "bold"),
        (f"  {place}  ", "name"),
        truncate(suspicion.message, max(screen.width - len(head), 10), screen.marks.dots),
    )


def describe_likelihood(confidence: float) -> str:
    """Figures behind the point would claim more than is known."""
    if confidence >= 0.9:
        return "almost surely a fault"
    return "likely" if confidence >= 0.7 else "possibly"


def _show_end(found: Triage, grave: int, notes: int, screen: Screen) -> None:
    marks = screen.marks
    told = f" and {plural(notes, 'note')}" if notes else ""
    if grave:
        screen.say((f"{marks.warn} {plural(grave, 'suspicion')}{told}", "warn"))
    elif found.outcome == "error" and not found.looked_at:
        screen.say((f"{marks.warn} nothing could be looked at, so nothing is known{told}", "warn"))
    elif found.outcome == "nothing-found":
        screen.say((f"{marks.note} nothing suspicious in what was looked at{told}", "title"))
    for head, texts in (("looked at", found.looked_at), ("not looked at", found.not_looked_at)):
        for number, text in enumerate(texts):
            screen.hang((f"  {head if not number else '':<14}", "aside"), (text, "aside"))

"""What a module seems to promise, and whether it keeps it."""

from collections.abc import Sequence

from attnlab.catalogue.finding_rules import PROPERTY_FINDINGS
from attnlab.records import CheckResult, Promise, record
from attnlab.render.checks import outcome_counts
from attnlab.render.findings import show_hidden, show_notes
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen

WORDS = {"passed": "holds", "failed": "broken", "skipped": "not-applicable", "error": "not-checked"}
COUNTED = {
    "failed": "broken",
    "passed": "hold",
    "error": "not looked at",
    "skipped": "not applicable",
}
UNCOMPARED = "properties alone were looked at: no value was compared with a reference"


@record
class VerifyPage:
    target: str  # as it was asked for
    built: str  # "Net(embed_dim=12, num_heads=3)"
    outcome: str  # passed, failed, crashed, timeout or memory
    promises: tuple[Promise, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    message: str = ""  # why nothing could be looked at
    notes: tuple[str, ...] = ()  # what was left out of the calls
    seconds: float = 0.0
    hidden: int = 0  # lines that are left out, so as not to spoil a puzzle
    next: str = ""

    def show(self, screen: Screen) -> None:
        screen.say(("verify  ", "title"), (self.built or self.target, "name"))
        _show_promises(self.promises, screen)
        for check in (c for c in self.checks if c.outcome == "failed"):
            screen.gap()
            _show_broken(check, screen)
        _show_rest(self.checks, screen)
        show_hidden(self.hidden, screen, "line")
        show_notes([f"not looked at: {note}" for note in self.notes], screen)
        screen.gap()
        if self.message:
            screen.hang((f"{screen.marks.bad} {self.outcome}  ", "bad"), self.message)
        else:
            screen.say(*outcome_counts(self.checks, screen, COUNTED))
            screen.say((UNCOMPARED, "aside"))
        screen.do_next(self.next)

    def document(self) -> Document:
        return {
            **pick(self, "target", "built", "outcome", "message", "promises"),
            "properties": [
                pick(check, "id", "title", "message", "file", "line")
                | {"outcome": WORDS[check.outcome]}
                for check in self.checks
            ],
            "notes": list(self.notes),
            "hidden_lines": self.hidden,
            **pick(self, "seconds", "next"),
        }


def _show_promises(promises: Sequence[Promise], screen: Screen) -> None:
    wide = max((len(promise.name) for promise in promises), default=0)
    for number, promise in enumerate(promises):
        head = "promises" if not number else ""
        screen.hang((f"{head:<8}  ", "aside"), (f"{promise.name:<{wide}}  ", ""), promise.reason)
    if not promises:
        screen.hang(("promises  ", "aside"), "nothing that was seen; --promise causal says so")


def _show_broken(check: CheckResult, screen: Screen) -> None:
    screen.say((f"{screen.marks.bad} {check.id}", "bad"))
    rule = PROPERTY_FINDINGS[check.id]
    place = f"{check.file}:{check.line}" if check.line else ""
    rows = (
        ("should", check.title),
        ("but", check.message),
        ("first", place),
        ("means", rule.text),
        ("try", rule.experiment.replace("`", "")),
    )
    for label, text in rows:
        if text:
            screen.hang((f"  {label:<6}  ", "aside"), text.replace("`", ""))


def _show_rest(checks: Sequence[CheckResult], screen: Screen) -> None:
    """A line for each of the others: those that hold, and why the rest was not looked at."""
    wide = max((len(check.id) for check in checks), default=0)
    for outcome in ("passed", "error", "skipped"):
        mark, style = screen.look(outcome)
        some = [check for check in checks if check.outcome == outcome]
        if some:
            screen.gap()
        for check in some:
            screen.hang((f"{mark} {check.id:<{wide}}  ", style), check.message or check.title)

"""A grade: the verdict first, then what failed and what to do about it."""

from attnlab.records import Challenge, Trace, Verdict, plain, record
from attnlab.records.diagnosis import Diagnosis
from attnlab.render.checks import outcome_counts, show_failures
from attnlab.render.findings import show_notes, show_output
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen
from attnlab.verdict import UNSEEN

WORDS = {
    "passed": "passed",
    "failed": "failed",
    "crashed": "crashed",
    "timeout": "ran out of time",
    "memory": "ran out of memory",
    "cannot-compare": "cannot compare",
}
UNDONE = "attnlab undid settings of this file: "  # in the output of a file that made some


@record
class GradePage:
    challenge: Challenge
    file: str  # in few words
    verdict: Verdict
    steps: Trace | None = None  # those around the first failure, where they are wanted
    compared: bool = False  # with the solution, line by line
    diagnosis: tuple[Diagnosis, ...] = ()

    def show(self, screen: Screen) -> None:
        verdict = self.verdict
        _show_verdict(self, screen)
        if verdict.outcome != "passed" and not any(c.outcome == "failed" for c in verdict.checks):
            screen.say(verdict.message, indent=2)
        show_failures(verdict.checks, screen, verdict.next)
        if self.compared:
            _show_comparison(self.diagnosis, screen)
        if self.steps:
            from attnlab.render.steps import show_table

            screen.gap()
            show_table(self.steps, screen)
        lines = verdict.output.splitlines()
        notes = [line for line in lines if line.startswith(UNDONE)]
        show_notes(notes, screen)
        if verdict.outcome != "passed":
            show_output("\n".join(line for line in lines if line not in notes), screen)
        counts = outcome_counts(verdict.checks, screen)
        if counts:
            screen.gap()
            screen.say(*counts, (f"   seed {verdict.seed}", "aside"))
        screen.do_next(verdict.next)

    def head(self, screen: Screen) -> tuple[str, str]:
        outcome = self.verdict.outcome
        return screen.verdict(outcome == "passed", WORDS.get(outcome, outcome))

    def document(self) -> Document:
        verdict = self.verdict
        return {
            **pick(verdict, "challenge", "file", "outcome", "score", "message", "checks"),
            "diagnosis": plain(self.diagnosis),  # with --reveal
            **pick(verdict, "isolation", "seconds", "seed", "output", "next"),
        }


def _show_comparison(found: tuple[Diagnosis, ...], screen: Screen) -> None:
    from attnlab.render.diff import show_diagnosis  # few grades compare: others must not wait

    for each in found:
        screen.gap()
        show_diagnosis(each, screen)
    if not found:
        screen.gap()
        screen.prose("Compared with the solution, no single line could be named.")


def _show_verdict(page: GradePage, screen: Screen) -> None:
    verdict, (head, style) = page.verdict, page.head(screen)
    first = next((c.id for c in verdict.checks if c.outcome == "failed"), "")
    at = f" at {first}" if first and verdict.outcome == "failed" else ""
    unseen = sum(c.reason == UNSEEN for c in verdict.checks)  # they may hold
    made = sum(c.outcome in ("passed", "failed") for c in verdict.checks)
    score = f"   score {'at least ' if unseen else ''}{verdict.score:.2f}"
    screen.say((f"{head}{at}", style), score if made >= unseen else "")
    screen.say((page.challenge.slug, "name"), f"  {page.file}", indent=2)

"""Why something matters: the docstring of a check or a mutation, the notes of a challenge."""

import re

from attnlab.records import CheckResult, plain, record
from attnlab.records.diagnosis import DiffReport
from attnlab.render.checks import show_failures
from attnlab.render.diff import show_diagnosis, show_steps
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen

PARAGRAPH_START = re.compile(r"\n(?=(?:Right|Wrong): )")  # they start a paragraph of their own


@record
class Evidence:
    """How the bug of a challenge shows in what its file computes."""

    parting: DiffReport | None  # of the shipped file from the solution
    failure: CheckResult | None = None  # where no step of a plain call tells them apart

    def show(self, screen: Screen) -> None:
        screen.gap()
        screen.say(("Where it shows", "title"))
        found = self.parting
        if found and found.outcome == "different":
            for each in found.diagnosis:
                show_diagnosis(each, screen)
            show_steps(found, screen, sides=("as shipped", "solution"))
            return
        if found and found.outcome == "same":
            screen.prose(
                "Called once, it returns what the solution returns. A check that tells them apart:"
            )
        show_failures([self.failure] if self.failure else [], screen)

    def document(self) -> Document:
        return {"parting": plain(self.parting), "failure": plain(self.failure)}


@record
class ExplainPage:
    id: str
    kind: str  # "check", "finding", "mutation", "challenge" or "page"
    title: str
    text: str
    advice: str = ""
    evidence: Evidence | None = None

    def show(self, screen: Screen) -> None:
        screen.say((self.title, "title"), (f"  {self.kind} {self.id}", "name"))
        if not self.text.startswith("#"):  # a heading brings its own space
            screen.gap()
        screen.prose(PARAGRAPH_START.sub("\n\n", self.text))
        if self.advice:
            screen.gap()
            screen.say(("when it fails: ", "next"), self.advice)
        if self.evidence:
            self.evidence.show(screen)

    def document(self) -> Document:
        found = pick(self, "id", "kind", "title", "text", "advice")
        return {**found, **(self.evidence.document() if self.evidence else {})}

"""Why something matters: the docstring of a check or a mutation, the notes of a challenge."""

import re

from attnlab.records import plain, record
from attnlab.records.diagnosis import DiffReport
from attnlab.render.diff import show_diagnosis, show_steps
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen

PARAGRAPH_START = re.compile(r"\n(?=(?:Right|Wrong): )")  # they start a paragraph of their own


@record
class ExplainPage:
    id: str
    kind: str  # "check", "finding", "mutation", "challenge" or "page"
    title: str
    text: str
    advice: str = ""
    parting: DiffReport | None = None  # of the shipped file from the solution

    def show(self, screen: Screen) -> None:
        screen.say((self.title, "title"), (f"  {self.kind} {self.id}", "name"))
        if not self.text.startswith("#"):  # a heading brings its own space
            screen.gap()
        screen.prose(PARAGRAPH_START.sub("\n\n", self.text))
        if self.advice:
            screen.gap()
            screen.say(("when it fails: ", "next"), self.advice)

        if self.parting:
            _show_parting(self.parting, screen)

    def document(self) -> Document:
        found = pick(self, "id", "kind", "title", "text", "advice")
        return {**found, "parting": plain(self.parting)} if self.parting else found


def _show_parting(found: DiffReport, screen: Screen) -> None:
    """The rows of the trace where it went wrong, of the file as it was shipped."""
    screen.gap()
    screen.say(("Where it shows in the trace", "title"))
    if found.outcome == "crashed":
        screen.prose(found.message)
    elif found.outcome != "different":
        screen.prose(
            "A plain call gives what the solution gives, row by row: it takes another mode, dtype, "
            "length or call, or a backward pass, to see it."
            if found.outcome == "same"
            else f"Its rows cannot be paired with the solution's: {found.message}."
        )
    else:
        for each in found.diagnosis:
            show_diagnosis(each, screen)
        show_steps(found, screen, sides=("as shipped", "solution"))

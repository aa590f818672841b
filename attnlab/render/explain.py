"""Why something matters: the docstring of a check or a mutation, the notes of a challenge."""

import re

from attnlab.records import record
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

    def show(self, screen: Screen) -> None:
        screen.say((self.title, "title"), (f"  {self.kind} {self.id}", "name"))
        if not self.text.startswith("#"):  # a heading brings its own space
            screen.gap()
        screen.prose(PARAGRAPH_START.sub("\n\n", self.text))
        if self.advice:
            screen.gap()
            screen.say(("when it fails: ", "next"), self.advice)

    def document(self) -> Document:
        return pick(self, "id", "kind", "title", "text", "advice")

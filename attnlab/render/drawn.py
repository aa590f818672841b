"""A challenge that was made for one user: what it asks, and how to begin."""

from attnlab.records import Challenge, record
from attnlab.render.challenge import show_head
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen


@record
class DrawnPage:
    challenge: Challenge
    seed: int
    file: str = ""  # that was written for the user at once

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen)
        screen.gap()
        screen.say(self.challenge.symptom)
        screen.say((f"--seed {self.seed} draws it again", "aside"))
        name = self.file or self.challenge.name
        if self.file:
            screen.gap()
            screen.say((f"{screen.marks.ok} ", "ok"), "wrote ", (self.file, "title"))
            screen.do_next(
                f"find the bug, fix it, then attnlab grade {name}; attnlab hint {name} helps"
            )
        else:
            screen.do_next(f"attnlab start {name} copies the file here; then attnlab run {name}")

    def document(self) -> Document:
        found = pick(self.challenge, "slug", "title", "level", "category", "symptom")
        return found | {"seed": self.seed, "file": self.file}

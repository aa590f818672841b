"""A file that was written for the user: where it is and what to do with it."""

from __future__ import annotations

from attnlab.records import Challenge, record
from attnlab.render.challenge import show_head
from attnlab.render.json import Document
from attnlab.render.screen import Screen


@record
class StartPage:
    challenge: Challenge
    file: str
    kept: str = ""  # where the file that stood there before is kept

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen)
        screen.gap()
        screen.say((f"{screen.marks.ok} ", "ok"), "wrote ", (self.file, "title"))
        if self.kept:
            screen.say("  the old file is kept as ", (self.kept, "title"))
        screen.do_next(f"attnlab run {self.challenge.name} shows how it fails")

    def document(self) -> Document:
        return {"challenge": self.challenge.slug, "file": self.file, "kept": self.kept}

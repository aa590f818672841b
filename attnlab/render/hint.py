"""The hints taken so far, the newest last."""

from __future__ import annotations

from attnlab.records import Challenge, record
from attnlab.render.json import Document
from attnlab.render.screen import Screen


@record
class HintPage:
    challenge: Challenge
    taken: int
    more: bool = True  # False: all hints had been shown before
    solved: bool = False

    def show(self, screen: Screen) -> None:
        total = len(self.challenge.hints)
        screen.say((self.challenge.title, "title"), (f"  {self.challenge.slug}", "name"))
        for number, text in enumerate(self.challenge.hints[: self.taken], 1):
            screen.gap()
            newest = "title" if number == self.taken else ""
            screen.say((f"hint {number} of {total}", newest))
            screen.prose(text, indent=2)
        name = self.challenge.name
        if not self.more:
            screen.gap()
            screen.say((f"There is no further hint: these are all {total}.", "warn"))
        if self.solved:
            screen.do_next(f"it is solved already; attnlab explain {name} shows the notes")
            return
        last = f"; if all else fails, attnlab solution {name}" if self.taken == total else ""
        screen.do_next(f"fix it, then attnlab grade {name}{last}")

    def document(self) -> Document:
        return {
            "challenge": self.challenge.slug,
            "hints": list(self.challenge.hints[: self.taken]),
            "taken": self.taken,
            "total": len(self.challenge.hints),
        }

"""What a challenge or program asks, before it is started."""

from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.records import Challenge, ChallengeProgress, record
from attnlab.render.json import Document, pick
from attnlab.render.list import progress_label
from attnlab.render.screen import Screen, level_marks, plural


@record
class DescriptionPage:
    unit: Challenge | ProgramEntry
    symptom: str
    task: str
    tracks: tuple[str, ...]
    standing: ChallengeProgress
    here: bool = False  # its file or folder lies in this folder
    going_on: bool = False  # an interview about it

    def show(self, screen: Screen) -> None:
        unit = self.unit
        screen.say((unit.title, "title"))
        words = f"{unit.kind}  level {level_marks(screen.marks, unit.level)}"
        screen.say((unit.slug, "name"), f"  {words}{self._size}")
        for title, text in (("symptom", self.symptom), ("task", self.task)):
            screen.heading(title, text)
        screen.gap()
        if self.tracks:
            screen.say(("tracks   ", "title"), ", ".join(self.tracks), indent=2)
        taken = self.standing.hints
        hints = f", {plural(taken, 'hint')} taken" if taken else ""
        so_far = ", and an interview about it is going on" if self.going_on else ""
        screen.say(("so far   ", "title"), progress_label(self.standing) + hints + so_far, indent=2)
        screen.do_next(self.next)

    @property
    def _size(self) -> str:
        if isinstance(self.unit, Challenge):
            return ""
        stages = f", {plural(self.unit.stages, 'stage')}" if self.unit.stages else ""
        return (
            f"  {plural(self.unit.bugs, 'bug')} to draw from{stages}, {self.unit.minutes} minutes"
        )

    @property
    def next(self) -> str:
        name = self.unit.name
        if self.going_on:
            return "attnlab interview status shows the clock and what was done"
        if self.standing.status == "solved" and not isinstance(self.unit, ProgramEntry):
            return f"attnlab explain {name} shows the notes"
        if self.here and self.standing.status != "solved":
            return f"fix it here, then attnlab grade {name}; attnlab hint {name} gives a hint"
        if isinstance(self.unit, ProgramEntry):
            return f"attnlab start {name}, or attnlab interview start {name} with a clock"
        return f"attnlab run {name} shows every step, attnlab start {name} copies it here"

    def document(self) -> Document:
        return {
            **pick(self.unit, "slug", "title", "kind", "topic", "level"),
            "symptom": self.symptom,
            "task": self.task,
            "tracks": list(self.tracks),
            **pick(self.standing, "status", "tries", "best", "hints", "solution_seen"),
            "next": self.next,
        }

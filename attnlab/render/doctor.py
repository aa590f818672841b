"""The state of this installation, one line for each check."""

from attnlab.doctor import Attempt, HealthCheck
from attnlab.records import plain, record
from attnlab.render.json import Document
from attnlab.render.screen import Screen, plural

WIDE = 60


@record
class DoctorPage:
    vitals: tuple[HealthCheck, ...]

    @property
    def outcome(self) -> str:
        return "failed" if any(v.state == "fail" for v in self.vitals) else "ok"

    def show(self, screen: Screen) -> None:
        marks = screen.marks
        looks = {"ok": (marks.ok, "ok"), "warn": (marks.warn, "warn"), "fail": (marks.bad, "bad")}
        wide = max((len(v.name) for v in self.vitals), default=0)
        for vital in self.vitals:
            mark, style = looks[vital.state]
            text = vital.text + (f"; {vital.hint}" if vital.hint else "")
            if screen.width < WIDE:  # beside its name there is no room
                screen.say((f"{mark} {vital.state}  ", style), (vital.name, "title"))
                screen.hang("  ", text)
                continue
            screen.hang(
                (f"{mark} {vital.state:<4}  ", style), (f"{vital.name:<{wide}}  ", "title"), text
            )

    def document(self) -> Document:
        return {"outcome": self.outcome, "vitals": plain(self.vitals)}


@record
class IsolationPage:
    """What came of each forbidden act, one line for each."""

    attempts: tuple[Attempt, ...]

    @property
    def outcome(self) -> str:
        return "passed" if all(attempt.refused for attempt in self.attempts) else "failed"

    def show(self, screen: Screen) -> None:
        marks = screen.marks
        wide = max(len(attempt.act.title) for attempt in self.attempts)
        for attempt in self.attempts:
            mark, style = (marks.ok, "ok") if attempt.refused else (marks.bad, "bad")
            why = f"refused: {attempt.why}" if attempt.refused else "DONE"
            if not attempt.refused:
                why += f"; the layer that refuses it is missing: {attempt.act.layer}"
            title = f"{attempt.act.title:<{wide}}  " if screen.width >= WIDE + wide // 2 else ""
            if not title:
                screen.say((f"{mark} ", style), attempt.act.title)
                screen.say(why, indent=4)
                continue
            screen.hang((f"{mark} ", style), title, why)
        refused = sum(attempt.refused for attempt in self.attempts)
        screen.gap()
        screen.say(f"{refused} of {plural(len(self.attempts), 'forbidden act')} refused")
        if self.outcome == "failed":
            screen.do_next("attnlab doctor says which layers this machine lacks, and why")

    def document(self) -> Document:
        return {"outcome": self.outcome, "attempts": plain(self.attempts)}

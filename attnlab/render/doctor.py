"""The state of this installation, one line for each check."""

from __future__ import annotations

from attnlab.doctor import HealthCheck
from attnlab.records import plain, record
from attnlab.render.json import Document
from attnlab.render.screen import Screen

WIDE = 60


@record
class DoctorPage:
    vitals: tuple[HealthCheck, ...]

    @property
    def outcome(self) -> str:
        return "failed" if any(v.state == "fail" for v in self.vitals) else "ok"

    def show(self, screen: Screen) -> None:
        marks = screen.marks
        looks = {
            "ok": (marks.ok, "ok"),
            "warn": (marks.warn, "warn"),
            "fail": (marks.bad, "bad"),
        }
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

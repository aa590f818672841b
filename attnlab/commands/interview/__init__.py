"""A round against the clock: debugging or another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.commands.interview.end import end, questions
from attnlab.commands.interview.formats import answer
from attnlab.commands.interview.going_on import abandon, ask, status, submit, write_note
from attnlab.commands.interview.history import history
from attnlab.commands.interview.stage import stage
from attnlab.commands.interview.start import start

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = 69
COMMANDS: dict[str, Callable[..., int]] = {
    "start": start,
    "status": status,
    "note": write_note,
    "ask": ask,
    "answer": answer,
    "submit": submit,
    "stage": stage,
    "end": end,
    "questions": questions,
    "abandon": abandon,
    "history": history,
}

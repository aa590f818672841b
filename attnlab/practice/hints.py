"""The hints of a round: of one bug after the other, those whose place was not changed first."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.catalogue.places import change_alone
from attnlab.catalogue.programs import compose
from attnlab.practice.interviews import round_event
from attnlab.practice.stages import events_of_round
from attnlab.progress import Progress
from attnlab.records.practice import Event, Interview
from attnlab.records.program import Files, Program, Stage

Hint = tuple[str, int]  # the bug or stage, and which of its hints, from 0


def hints_before(
    store: Progress, program: Program, bugs: Sequence[str], interview: Interview | None
) -> tuple[Hint, ...]:
    """The hints of these bugs, or of a stage, that were shown since the round was begun."""
    mine = interview.events if interview else events_of_round(store, program)
    shown = [(e.bug, int(e.question)) for e in mine if e.kind == "hint" and e.bug in bugs]
    return tuple(dict.fromkeys(shown))


def next_hint(
    program: Program, bugs: Sequence[str], stage: Stage | None, files: Files, before: Sequence[Hint]
) -> Hint | None:
    """The next hint of the stage, or of a bug: those whose lines nobody changed come first."""
    if stage:
        return (stage.id, len(before)) if len(before) < len(stage.hints) else None
    files = compose(program, bugs) | files
    changed = {bug for bug in bugs if change_alone(program, bugs, files, bug)}
    for bug in sorted(bugs, key=lambda bug: bug in changed):
        for number in range(len(program.patches[bug].hints)):
            if (bug, number) not in before:
                return bug, number
    return None


def hint_texts(
    program: Program, bugs: Sequence[str], stage: Stage | None, shown: Sequence[Hint]
) -> tuple[tuple[str, str], ...]:
    """A heading and a text for each."""
    found = []
    for name, number in shown:
        hints = stage.hints if stage else program.patches[name].hints
        place = f"stage {name}" if stage else f"bug {bugs.index(name) + 1} of {len(bugs)}"
        found.append((f"{place}, hint {number + 1} of {len(hints)}", hints[number]))
    return tuple(found)


def hint_event(program: Program, hint: Hint, interview: Interview | None) -> Event:
    """What the store keeps of a hint."""
    return round_event(program, interview, "hint", bug=hint[0], question=str(hint[1]))

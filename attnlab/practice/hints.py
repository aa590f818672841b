"""The hints of a round: of one bug after the other, those whose place was not changed first."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.catalogue.programs import compose
from attnlab.practice.interviews import make_event
from attnlab.practice.stages import events_of_round
from attnlab.progress import Progress
from attnlab.records.practice import Event, Interview
from attnlab.records.program import Files, Program, Stage

Hint = tuple[str, int]  # the bug or stage, and which of its hints, from 0


def hints_before(
    store: Progress, program: Program, bugs: Sequence[str], interview: Interview | None
) -> tuple[Hint, ...]:
    """The hints of these bugs, or of a stage, that were shown since the round or its interview was
    begun."""
    mine = interview.events if interview else events_of_round(store, program)
    shown = [(e.bug, int(e.question)) for e in mine if e.kind == "hint" and e.bug in bugs]
    return tuple(dict.fromkeys(shown))


def next_hint(
    program: Program, bugs: Sequence[str], files: Files, before: Sequence[Hint]
) -> Hint | None:
    """The next hint of the first bug whose lines are as they were given, else of the others."""
    given = compose(program, bugs)
    changed = {bug for bug in bugs if _is_changed(program, bug, given, files)}
    for bug in sorted(bugs, key=lambda bug: bug in changed):
        for number in range(len(program.patches[bug].hints)):
            if (bug, number) not in before:
                return bug, number
    return None


def hint_texts(
    program: Program, bugs: Sequence[str], shown: Sequence[Hint]
) -> tuple[tuple[str, str], ...]:
    """A heading and a text for each."""
    return tuple(
        (f"bug {bugs.index(bug) + 1} of {len(bugs)}, hint {number + 1} of {len(hints)}", text)
        for bug, number in shown
        for hints in (program.patches[bug].hints,)
        for text in hints[number : number + 1]
    )


def next_stage_hint(stage: Stage, before: Sequence[Hint]) -> Hint | None:
    """The next hint of a stage."""
    return (stage.id, len(before)) if len(before) < len(stage.hints) else None


def stage_hint_texts(stage: Stage, shown: Sequence[Hint]) -> tuple[tuple[str, str], ...]:
    """A heading and a text for each."""
    return tuple(
        (f"stage {stage.id}, hint {number + 1} of {len(stage.hints)}", stage.hints[number])
        for _, number in shown
    )


def hint_event(program: Program, hint: Hint, interview: Interview | None) -> Event:
    """What the store keeps of a hint."""
    bug, number = hint
    if interview:
        return make_event(interview, "hint", bug=bug, question=str(number))
    return Event(kind="hint", base=program.slug, bug=bug, question=str(number))


def _is_changed(program: Program, bug: str, given: Files, files: Files) -> bool:
    """Whether a person changed one of the places of a bug. Lines that a bug leaves out are taken
    for written again where they stand as in the right program."""
    for edit in program.patches[bug].edits:
        text, wrong, right = files.get(edit.file, ""), edit.new.strip("\n"), edit.old.strip("\n")
        if wrong.strip() and given[edit.file].count(wrong) != text.count(wrong):
            return True
        if not wrong.strip() and right in text:
            return True
    return False

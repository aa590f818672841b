"""What a person changed in the files of a round. Events keep it, so that the end of an interview
and its history say the same, whatever became of the files."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from typing import Any

from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import compose, count_changed_lines
from attnlab.practice.interviews import make_event, read_details, report_text
from attnlab.records.practice import Event, EventKind, Interview
from attnlab.records.program import Files, Program, ProgramReport

LINES, DECOYS, DIGEST = "changed_lines", "changed_decoys", "digest"


def describe_changes(program: Program, ids: Sequence[str], files: Files) -> dict[str, Any]:
    """How many lines are not as they were given, and in which decoys; {} where no file is left."""
    given = compose(program, ids)
    kept = {
        name: _unchanged_lines(given[name], text) for name, text in files.items() if name in given
    }
    changed = [
        patch
        for patch, places in bug_lines(program, ids).items()
        if program.patches[patch].decoy
        and any(
            not kept[file].issuperset(range(first, last + 1))
            for file, first, last in places
            if file in kept
        )
    ]
    return {LINES: count_changed_lines(given, files), DECOYS: changed} if files else {}


def grade_event(
    program: Program, interview: Interview, kind: EventKind, report: ProgramReport, files: Files
) -> Event:
    """What is kept of a grade: its outcome, the bugs that are gone, what was changed by then."""
    changes = describe_changes(program, interview.bugs, files)
    text = report_text(report, changes | {DIGEST: _digest(program, files)})
    return make_event(interview, kind, outcome=report.outcome, text=text)


def differ_from_passed(program: Program, events: Sequence[Event], files: Files) -> bool:
    """Whether no grade that passed was of these files; False where none says of which it was."""
    passed = (read_details(event) for event in events if event.outcome == "passed")
    digests = {details[DIGEST] for details in passed if DIGEST in details}
    return bool(digests) and _digest(program, files) not in digests


def _digest(program: Program, files: Files) -> str:
    text = "\0".join(files.get(name, "") for name in program.edit)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def last_changes(events: Sequence[Event]) -> dict[str, Any]:
    """What the last event that keeps the changes says of them."""
    kept = (read_details(event) for event in reversed(events))
    return next((details for details in kept if LINES in details), {LINES: 0, DECOYS: []})


def _unchanged_lines(before: str, after: str) -> set[int]:
    """The numbers of the lines that still stand as they did, but for comments and space at ends."""
    first, second = (
        [line.partition("#")[0].rstrip() for line in text.splitlines()] for text in (before, after)
    )
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    return {
        number
        for start, _, size in matcher.get_matching_blocks()
        for number in range(start + 1, start + size + 1)
    }

"""Which bug a note names: by the line it points at, wherever that line stands by now."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from attnlab.catalogue.programs import compose
from attnlab.errors import Refused
from attnlab.records import record
from attnlab.records.program import Files, Program

PLACE = re.compile(r"(\w+\.py):(\d+)")
NEAR = 2  # lines beside the place of a bug that still point at it
WORDS = 3  # that a note has besides the place where it gives a reason


@record
class NoteReading:
    """What a note says."""

    places: tuple[tuple[str, int], ...]  # file and line
    bug: str  # the one it points at, else the decoy; "" for none
    reason: bool  # it says more than the place


def read_note(text: str, program: Program, ids: Sequence[str], files: Files) -> NoteReading:
    """What a note says of a round with these bugs, whose files are now `files`."""
    places = tuple((file, int(line)) for file, line in PLACE.findall(text))
    near = [
        (program.patches[patch].decoy, distance, patch)
        for file, line in places
        for patch, distance in _patches_near(program, ids, files, file, line)
    ]
    words = re.findall(r"[^\W\d]{2,}", PLACE.sub("", text))
    bug = min(near, default=(False, 0, ""))[2]
    return NoteReading(places=places, bug=bug, reason=len(words) >= WORDS)


def refuse_unclear(text: str, program: Program, ids: Sequence[str], files: Files) -> None:
    """Raise `Refused` for a note that says nothing, or points behind the end of a file."""
    example = f'as in attnlab interview note "{program.edit[-1]}:40 labels are not shifted"'
    if not text.strip():
        raise Refused("the note is empty", example)
    given = compose(program, ids)
    for file, line in PLACE.findall(text):
        ends = [len(texts[file].splitlines()) for texts in (given, files) if file in texts]
        if ends and not 1 <= int(line) <= max(ends):
            raise Refused(f"{file} has {max(ends)} lines, so there is no {file}:{line}", example)


def bug_lines(program: Program, ids: Sequence[str]) -> dict[str, list[tuple[str, int, int]]]:
    """For each bug and decoy, the files and the first and last lines of its places in the round as
    it was given, from 1."""
    found: dict[str, list[tuple[str, int, int]]] = {}
    texts = compose(program, ids)
    edits = sorted(
        ((edit, bug) for bug in ids for edit in program.patches[bug].edits),
        key=lambda pair: (pair[0].file, pair[0].start),
    )
    moved: dict[str, int] = {}
    for edit, bug in edits:
        begin = edit.start + moved.get(edit.file, 0)
        moved[edit.file] = moved.get(edit.file, 0) + len(edit.new) - len(edit.old)
        text = texts[edit.file]
        body = edit.new.strip("\n")
        begin += edit.new.index(body) if body else 0
        first = text.count("\n", 0, begin) + 1
        found.setdefault(bug, []).append((edit.file, first, first + body.count("\n")))
    return found


def _patches_near(
    program: Program, ids: Sequence[str], files: Files, file: str, line: int
) -> list[tuple[str, int]]:
    given = compose(program, ids).get(file, "")
    lines = {line, *_lines_before(given, files.get(file, given), line)}
    near = []
    for patch, spans in bug_lines(program, ids).items():
        for where, first, last in spans:
            gaps = [max(first - at, at - last, 0) for at in lines]
            if where == file and min(gaps) <= NEAR:
                near.append((patch, min(gaps)))
    return near


def _lines_before(given: str, now: str, line: int) -> range:
    """Where a line of the file as it is now stood in the file as it was given."""
    matcher = difflib.SequenceMatcher(None, given.splitlines(), now.splitlines(), autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if j1 < line <= j2:
            same = i1 + line - j1
            return range(same, same + 1) if tag == "equal" else range(i1 + 1, i2 + 1)
    return range(0)

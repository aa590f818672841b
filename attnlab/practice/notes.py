"""Which bug a note names: by the line it points at, wherever that line stands by now, and by its
words where several are near."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import compose
from attnlab.errors import Refused
from attnlab.records import record
from attnlab.records.program import Files, Program, ProgramBug

PLACE = re.compile(r"(\w+\.py):(\d+)")
ALIKE = 0.5  # share of two lines from which one was made of the other
NEAR = 2  # lines beside the place of a bug that still point at it
WORDS = 3  # that a note has besides the place where it gives a reason
ENDINGS = re.compile(r"(?:ing|ed|es|s|ly)$")
# Words that say nothing of a bug, whichever it is.
EMPTY = """
about after again all also and any are bad because been before but bug can code could does done
else even every file fine fix for from good have here how into just last like line look make many
more most must need never not note now off one only other our out over right same see seem should
some sure than that the their them then there thing think this too two use very wait was what when
where which will with wrong you your
"""


@record
class NoteReading:
    """What a note says."""

    places: tuple[tuple[str, int], ...]  # file and line
    bug: str  # the one it points at, else the decoy; "" for none
    reason: bool  # it says something of the bug, besides the place


def read_note(text: str, program: Program, ids: Sequence[str], files: Files) -> NoteReading:
    """What a note says of a round with these bugs, whose files are now `files`."""
    places = tuple((file, int(line)) for file, line in PLACE.findall(text))
    near = [
        (
            program.patches[patch].decoy,
            not words_about(program.patches[patch], text),
            distance,
            patch,
        )
        for file, line in places
        for patch, distance in _patches_near(program, ids, files, file, line)
    ]
    _, silent, _, bug = min(near, default=(False, True, 0, ""))
    words = re.findall(r"[^\W\d]{2,}", PLACE.sub("", text))
    return NoteReading(places=places, bug=bug, reason=not silent and len(words) >= WORDS)


def words_about(patch: ProgramBug, text: str) -> tuple[str, ...]:
    """The words of a note that it shares with what is known of a bug: its name, its symptom, why
    it is wrong, how one finds it, its lines before and after."""
    told = [patch.id, patch.category, patch.symptom, patch.why, patch.find, *patch.hints]
    told += [f"{each.question} {each.answer}" for each in patch.follow_ups]
    told += [f"{edit.old} {edit.new}" for edit in patch.edits]
    known = {stem for stem, _ in _stems(" ".join(told))} - {stem for stem, _ in _stems(EMPTY)}
    return tuple({s: word for s, word in _stems(PLACE.sub("", text)) if s in known}.values())


def _stems(text: str) -> list[tuple[str, str]]:
    """Each word of a text, and before it what is left without its ending."""
    words = re.findall(r"[a-z]{3,}", text.lower().replace("_", " "))
    return [(ENDINGS.sub("", word), word) for word in words]


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
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if j1 < line <= j2 and j2 - j1 == i2 - i1:  # line by line, changed or not
            same = i1 + line - j1
            return range(same, same + 1)
        if j1 < line <= j2:
            return _most_alike(now.splitlines()[line - 1], given.splitlines(), range(i1, i2))
    return range(0)


def _most_alike(line: str, given: Sequence[str], among: range) -> range:
    """The number of the line that another one was made of; of all where none is like it."""
    alike = {
        at: difflib.SequenceMatcher(None, line.strip(), given[at].strip()).ratio() for at in among
    }
    best = max(among, key=lambda at: alike[at], default=-1)
    if best >= 0 and alike[best] > ALIKE:
        return range(best + 1, best + 2)
    return range(among.start + 1, among.stop + 1)

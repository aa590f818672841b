"""Which bug a note points at: by its lines, wherever they stand by now, and by its words where
several are near. Whether it says what is wrong there is judged by the person at the end."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import compose
from attnlab.errors import Refused
from attnlab.records import record
from attnlab.records.practice import REASON, RIGHT
from attnlab.records.program import Files, Program, ProgramBug
from attnlab.suggest import did_you_mean

# `model.py:40`, `model.py lines 40-43`, `line 40 of model.py`, `line 40`.
PLACE = re.compile(
    r"(?:(?P<file>\w+\.py)(?:\s*:\s*(?:lines?\s+)?|,?\s+lines?\s+)|\blines?\s+)"
    r"(?P<first>\d+)(?:\s*(?:-|\u2013|to)\s*(?P<last>\d+))?"
    r"(?:\s+(?:of|in)\s+(?P<behind>\w+\.py))?",
    re.IGNORECASE,
)
FILE = re.compile(r"\w+\.py\b")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
# Before a name that may be a word of the text as well: `in forward`, `model.py forward`.
# Behind the number of a line it is one, unless the name alone is set off: `model.py:72 layer norm`.
LEADS = re.compile(r"(?:^|[`.]|\.py,?|\bin|\bfunction|\bmethod|\bdef|\bclass)\s*$")
# A note that takes the code for right accuses nothing: "no bug", "fine", "looks odd, is right".
NO_HARM = r"(?:changes\ nothing|makes\ no\ difference|(?:does\ not|doesn't)\ (?:matter|hurt))\b"
RIGHT_WORDS = r"(?:right|fine|correct|ok|okay|harmless|intended|on\ purpose)\b(?!\?)"
TAKES_FOR_RIGHT = re.compile(
    rf"""\b(?:no|not\ an?|isn't\ an?)\ bug\b
    | ^\W*nothing\ (?:is\ |looks\ )?wrong(?:\ here)?\W*$
    | ^\W*(?:(?:this|it|that|all|code|line)\s+)*(?:(?:is|looks|seems)\s+)?{RIGHT_WORDS}
      \s*(?:$|[.,;:!]|as\b|here\b)(?!.*\bbut\b)
    | \b(?:looks?|seems?)\ \w+,?\ (?:(?:but|and|yet)\ )?(?:it\ )?is\ {RIGHT_WORDS}
    | \b(?:looks?|seems?)\ [^.;]*\b(?:but|and|yet|,)\s*(?:it\ )?(?:really\ )?{NO_HARM}
    | (?<!not\ )\ba\ (?:red\ herring|decoy)\b(?!\?)
    | \b(?:is|are|but|yet|so)\ (?:(?!not\b|never\b)\w+\ )?harmless\b(?!\?)(?!.*\bbut\b)""",
    re.IGNORECASE | re.VERBOSE,
)
ALIKE = 0.5  # share of two lines from which one was made of the other
NEAR = 2  # lines beside the place of a bug that still point at it, whatever a note says
WORDS = 3  # that a note has besides its place where it gives a reason, or shares with a bug near it
ENDINGS = re.compile(r"(?:ing|ed|es|s|ly)$")
# Words that say nothing of a bug, whichever it is.
EMPTY = Path(__file__).with_suffix(".txt").read_text("utf-8")


@record
class NotePlace:
    """Some lines of a file."""

    file: str
    first: int
    last: int

    def touches(self, other: NotePlace) -> bool:
        return self.file == other.file and other.first <= self.last and self.first <= other.last

    def __str__(self) -> str:
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


@record
class NoteReading:
    """What a note says. Whether it says the truth of a bug is for a person to judge."""

    places: tuple[NotePlace, ...]
    bug: str  # those it may mean in the function it names; else the one it points at, or a decoy
    outcome: str = ""  # RIGHT, REASON where something is said besides the place
    outside: NotePlace | None = None  # what it speaks of by name, where its lines stand elsewhere


def read_note(text: str, program: Program, ids: Sequence[str], files: Files) -> NoteReading:
    """What a note says of a round with these bugs, whose files are now `files`."""
    places = note_places(text, program, files)
    said = FILE.sub("", PLACE.sub("", text)).strip()
    right = bool(TAKES_FOR_RIGHT.search(said))
    shared = {patch: len(words_about(program.patches[patch], text)) for patch in ids}
    around = [
        (place, patch, distance)
        for place in places
        for patch, distance in _patches_near(program, ids, files, place)
        if distance <= NEAR or shared[patch] >= WORDS
    ]
    near = [
        (program.patches[patch].decoy != right, not shared[patch], distance, -shared[patch], patch)
        for _, patch, distance in around
    ]
    *_, bug = min(near, default=("",))
    spoken = min(1, shared.get(bug, 0))  # words: a bug that shares none is not meant
    if bug and not right and not program.patches[bug].decoy:
        inside = [p for at, p, gap in around if not gap and _is_in_definition(at, files)]
        inside = [p for p in inside if not program.patches[p].decoy and shared[p] >= spoken]
        bug = " ".join(dict.fromkeys((bug, *inside)))
    names = _names(text, files)
    apart = names and not any(p.touches(name) for name in names for p in places)
    several = len(re.findall(r"[^\W\d]{2,}", said)) >= WORDS
    outcome = RIGHT if right else REASON if several else ""
    outside = names[0] if apart and places else None
    return NoteReading(places=places, bug=bug, outcome=outcome, outside=outside)


def note_places(text: str, program: Program, files: Files) -> tuple[NotePlace, ...]:
    """The lines that a note points at: by their numbers, else by the name of what stands there."""
    named = set(FILE.findall(text)) or set(program.edit)
    found = []
    for match in PLACE.finditer(text):
        file = match["file"] or match["behind"] or (named.pop() if len(named) == 1 else "")
        first = int(match["first"])
        found.append(NotePlace(file=file, first=first, last=int(match["last"] or first)))
    if found:
        return tuple(found)
    return _names(text, {file: text for file, text in files.items() if file in named})[:1]


def _names(text: str, files: Files) -> tuple[NotePlace, ...]:
    """The classes and functions that a note names, where the name stands for one alone."""
    known, found = _definitions(files), []
    for match in NAME.finditer(text):
        name, before, after = match[0], text[: match.start()], text[match.end() :]
        plain = name.islower() and "." not in name and "_" not in name
        if len(known.get(name, ())) == 1 and (
            not plain or LEADS.search(before) or after[:1] in ("(", "`", ":")
        ):
            found.append(known[name][0])
    return tuple(found)


def _is_in_definition(place: NotePlace, files: Files) -> bool:
    """Whether one class or function holds all its lines; who names a whole file names no bug."""
    spans = chain(*_definitions({place.file: files.get(place.file, "")}).values())
    return any(s.first <= place.first and place.last <= s.last for s in spans)


def source_line(place: NotePlace, files: Files) -> str:
    """The first line of code at the place of a note, or of comment where no code is; "" where all
    is blank: whoever mistook the place sees so."""
    text = files.get(place.file, "").splitlines()[place.first - 1 : place.last]
    lines = [line.strip() for line in text if line.strip()]
    return next((line for line in lines if not line.startswith("#")), "".join(lines[:1]))


def _definitions(files: Files) -> dict[str, list[NotePlace]]:
    """Where each class and function stands: by its name, and with its class or file before it."""
    found: dict[str, list[NotePlace]] = {}

    def visit(file: str, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                place = NotePlace(file=file, first=child.lineno, last=child.end_lineno or 0)
                whole = f"{file.removesuffix('.py')}.{prefix}{child.name}"
                for name in {child.name, prefix + child.name, whole}:
                    found.setdefault(name, []).append(place)
                visit(file, child, f"{child.name}.")

    for file, text in files.items():
        with suppress(SyntaxError):
            visit(file, ast.parse(text), "")
    return found


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
    """Raise `Refused` for a note that says nothing, or points where nothing is."""
    example = f'as in attnlab interview note "{program.edit[-1]}:40 labels are not shifted"'
    if not text.strip():
        raise Refused("the note is empty", example)
    names = " or ".join(program.edit)
    for file in FILE.findall(text):
        if file not in program.edit:
            near = "" if file in program.given else did_you_mean(file, program.edit)
            raise Refused(f"{file} is not a file to fix", near or f"the bugs are in {names}")
    given = compose(program, ids)
    for place in note_places(text, program, files):
        if not place.file:
            raise Refused(f"line {place.first} of which file, {names}?", example)
        ends = [len(t[place.file].splitlines()) for t in (given, files) if place.file in t]
        if not 1 <= place.first <= place.last <= max(ends):
            said = f"{place.file} has {max(ends)} lines, so there is no {place}"
            raise Refused(said, example)
    if not NAME.search(FILE.sub("", PLACE.sub("", text))):
        raise Refused("the note does not say what is wrong there", example)


def bugs_at(
    program: Program, ids: Sequence[str], files: Files, places: Iterable[tuple[str, int]]
) -> tuple[str, ...]:
    """The bugs of a round whose lines some places name, each a file and a line as it is now."""
    found = [
        bug
        for file, line in places
        for bug, gap in _patches_near(
            program, ids, files, NotePlace(file=file, first=line, last=line)
        )
        if gap <= NEAR and not program.patches[bug].decoy
    ]
    return tuple(dict.fromkeys(found))


def _patches_near(
    program: Program, ids: Sequence[str], files: Files, place: NotePlace
) -> list[tuple[str, int]]:
    """The patches a few lines from a place, or in the same function, and how far from it."""
    given = compose(program, ids).get(place.file, "")
    now = files.get(place.file, given)
    lines = set(range(place.first, place.last + 1))
    lines |= {at for line in tuple(lines) for at in _lines_before(given, now, line)}
    around = _functions_around(given, lines)
    near = []
    for patch, spans in bug_lines(program, ids).items():
        for where, first, last in spans:
            gap = min(max(first - at, at - last, 0) for at in lines)
            if where == place.file and (gap <= NEAR or around & set(range(first, last + 1))):
                near.append((patch, gap))
    return near


def _functions_around(text: str, lines: Collection[int]) -> set[int]:
    """The lines of the innermost class or function around each of some lines."""
    spans = [span for found in _definitions({"": text}).values() for span in found]
    found: set[int] = set()
    for line in lines:
        inside = [(s.last - s.first, s) for s in spans if s.first <= line <= s.last]
        if inside:
            _, span = min(inside, key=lambda pair: pair[0])
            found |= set(range(span.first, span.last + 1))
    return found


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

"""Where the bugs of a round stand, and what a person wrote there.

Lines are compared: what was changed at one bug can be put into the right program alone, so that it
is judged by itself, whatever else is still wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from attnlab.catalogue.programs import compose
from attnlab.records.program import Files, Program

Places = Mapping[str, Sequence[tuple[str, int, int]]]


class Hunk(NamedTuple):
    """Lines that stand in place of others."""

    start: int  # the first line that is replaced, from 0
    end: int  # the one behind the last
    lines: tuple[str, ...]


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


def changed_spans(before: str, after: str) -> list[tuple[int, int]]:
    """The lines of `after` that are not as before, from 0; empty where some are gone."""
    old, new = before.splitlines(), after.splitlines()
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(j1, j2) for tag, *_, j1, j2 in codes if tag != "equal"]


class Change(NamedTuple):
    """The right program with some of what was written in a round."""

    files: Files
    shared: bool  # some of it stands at other bugs as well


Stray = tuple[str, Hunk]  # a file and what was written in it


def change_alone(
    program: Program, ids: Sequence[str], files: Files, bug: str, strays: Collection[Stray] = ()
) -> Change | None:
    """The right program with what was written at the place of one bug of a round, and with these
    changes elsewhere; None where there are none. What nobody changed stays as it was given."""
    given, places = compose(program, ids), bug_lines(program, ids)
    others = _other_bugs(program, ids, bug)
    right = compose(program, [b for b in ids if b not in others])
    result, found, shared = dict(files), False, False
    for file in program.edit:
        before = given[file].splitlines(keepends=True)
        mine = [
            hunk
            for hunk in _hunks(before, files[file])
            if _is_at(hunk, file, places.get(bug, ())) or (file, hunk) in strays
        ]
        kept = [h for h in _hunks(before, right[file]) if not any(_overlap(h, m) for m in mine)]
        result[file] = _replace(before, sorted([*kept, *mine]))
        found = found or bool(mine)
        shared = shared or any(_is_at(m, file, places[other]) for m in mine for other in others)
    return Change(result, shared) if found else None


def stray_changes(
    program: Program, ids: Sequence[str], files: Files, bug: str, gone: Collection[str]
) -> list[list[Stray]]:
    """What was written at no other bug and not at this one: each run of lines by itself. A line
    beside a bug that is not `gone` by what stands at its place may belong to this one."""
    given, places = compose(program, ids), bug_lines(program, ids)
    others = _other_bugs(program, ids, bug)
    runs: list[list[Stray]] = []
    for file in program.edit:
        before = given[file].splitlines(keepends=True)
        for hunk in _hunks(before, files[file]):
            taken = any((_is_at if o in gone else _changes)(hunk, file, places[o]) for o in others)
            if taken or _is_at(hunk, file, places.get(bug, ())):
                continue
            last = runs[-1][-1] if runs else None
            if last and last[0] == file and last[1].end == hunk.start:
                runs[-1].append((file, hunk))
            else:
                runs.append([(file, hunk)])
    return runs


def _other_bugs(program: Program, ids: Sequence[str], bug: str) -> list[str]:
    return [b for b in ids if b != bug and not program.patches[b].decoy]


def _hunks(before: Sequence[str], text: str) -> list[Hunk]:
    """What differs; lines that stand in place of as many others are taken one by one."""
    after = text.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    found = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal" and i2 - i1 == j2 - j1:
            found += [Hunk(i1 + n, i1 + n + 1, (after[j1 + n],)) for n in range(i2 - i1)]
        elif tag != "equal":
            found.append(Hunk(i1, i2, tuple(after[j1:j2])))
    return found


def _is_at(hunk: Hunk, file: str, places: Sequence[tuple[str, int, int]]) -> bool:
    """Whether it changes one of the lines, or puts new ones beside them."""
    beside = [(where, first - 1, last + 1) for where, first, last in places]
    return _changes(hunk, file, beside if hunk.start == hunk.end else places)


def _changes(hunk: Hunk, file: str, places: Sequence[tuple[str, int, int]]) -> bool:
    return any(
        where == file and hunk.start < last and hunk.end >= first for where, first, last in places
    )


def _overlap(one: Hunk, other: Hunk) -> bool:
    same = one.start == one.end == other.start == other.end
    return same or (one.start < other.end and other.start < one.end)


def _replace(before: Sequence[str], hunks: Sequence[Hunk]) -> str:
    lines, at = list[str](), 0
    for hunk in hunks:
        lines += [*before[at : hunk.start], *hunk.lines]
        at = hunk.end
    return "".join([*lines, *before[at:]])

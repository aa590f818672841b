"""What questions are made of: right code of the catalogue, and code with one bug or decoy in it.

One folder of the catalogue is read for a question, not all of them: the first question is there at
once.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.catalogue.bases import SOLUTION, read_decoys, read_shared
from attnlab.catalogue.folders import BASE_FILE, read_slug
from attnlab.catalogue.load import Catalogue, read_challenge
from attnlab.catalogue.patches import apply_edits, read_text
from attnlab.catalogue.programs import read_program, read_units
from attnlab.catalogue.texts import edited_solution, notes_text
from attnlab.catalogue.toml_rules import read_document
from attnlab.errors import AttnlabError
from attnlab.files import PARSING
from attnlab.grading.program_sources import unit_code
from attnlab.probe.inputs.sizes import rounds
from attnlab.records import Challenge, Code, Contract, Job, record
from attnlab.records.program import Files, Program, ProgramBug, Unit
from attnlab.sizes import Sizes

LONGEST, LEAST = 40, 20  # lines that are shown of a file


@record
class Piece:
    """A class or function that can be built and fed, in its right file."""

    base: str
    code: Code
    contract: Contract

    @property
    def text(self) -> str:
        return self.code.text

    def sizes(self, number: int) -> Sizes:
        """Sizes at which hardly two axes are alike; other ones for each number."""
        drawn = rounds(self.contract, random.Random(number))
        return drawn[1 + number % 2] if len(drawn) > 2 else drawn[0]

    def trace_job(self, number: int) -> Job:
        contract = replace(self.contract, sizes=self.sizes(number))
        return Job(candidate=self.code, contract=contract, stages=("trace",), seed=0)


@record
class Patched:
    """A right file, and the same with a bug or a decoy in it, or with nothing changed."""

    base: str
    file: str
    right: str
    text: str  # with the edits
    id: str = ""  # of the bug or decoy
    decoy: bool = False
    category: str = ""
    symptom: str = ""
    effect: str = ""  # as the material says; "" where it has to be run
    why: str = ""
    challenge: Challenge | None = None
    program: Program | None = None
    name: str = ""  # the class or function that is graded
    files: tuple[str, ...] = ()  # all that the edits change

    @property
    def is_right(self) -> bool:
        return self.decoy or not self.id


class Material:
    """Pieces of a catalogue, drawn by a die."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        return self.catalogue.folders

    def draw(self, what: str, dice: random.Random) -> object:
        """A `piece` of right code, or a `patched` file, or one of a `program` with a bug; None of
        "", or where the folder that was drawn has none."""
        if not what:
            return None
        folders = [f for f in self.folders if what != "program" or is_program(f)]
        folder = dice.choice(folders)
        if what == "piece":  # the others are not read
            makers = piece_makers(folder)
            return dice.choice(makers)() if makers else None
        found = self.of(folder, what)
        return dice.choice(found) if found else None

    def of(self, folder: Path, what: str) -> Sequence[object]:
        """All of one folder."""
        if what == "piece":
            return [make() for make in piece_makers(folder)]
        bugs = (one for one in read_patched(folder) if one.program and not one.is_right)
        return tuple(bugs) if what == "program" else read_patched(folder)

    def all(self, what: str) -> Iterator[object]:
        for folder in self.folders:
            yield from self.of(folder, what)


def is_program(folder: Path) -> bool:
    return (folder / "program.toml").exists()


@lru_cache(maxsize=64)
def read_folder(folder: Path) -> Program | tuple[Challenge, ...]:
    if is_program(folder):
        return read_program(folder)
    return tuple(Catalogue([folder]).challenges)


@lru_cache(maxsize=64)
def piece_makers(folder: Path) -> tuple[Callable[[], Piece], ...]:
    """What reads each right file of a folder: a challenge's solution and others, or the units of a
    program; of one that is broken, nothing. Bugs are not read for it."""
    try:
        if is_program(folder):
            files, units = read_units(folder)
            return tuple(partial(_unit_piece, read_slug(folder), unit, files) for unit in units)
        if (folder / BASE_FILE).exists():
            base = read_shared(folder)
            paths = (str(folder / SOLUTION), *base.alternatives)
            name, shared = base.found["class"], (base.slug, base.contract)
        else:
            one = read_challenge(folder)
            paths = (one.solution, *one.alternatives)
            name, shared = one.class_name, (one.slug, one.contract)
    except AttnlabError:
        return ()
    return tuple(partial(_file_piece, Path(path), name, *shared) for path in paths)


def _unit_piece(base: str, unit: Unit, files: Files) -> Piece:
    return Piece(base=base, code=unit_code(unit, files, ""), contract=unit.contract)


def _file_piece(path: Path, name: str, base: str, contract: Contract) -> Piece:
    code = Code(file=str(path), text=read_text(path), name=name, path=str(path))
    return Piece(base=base, code=code, contract=contract)


@lru_cache(maxsize=64)
def read_patched(folder: Path) -> tuple[Patched, ...]:
    """Each bug and decoy of a folder by itself, and each file as it is right."""
    found = read_folder(folder)
    if isinstance(found, Program):
        return tuple(_of_program(found))
    return tuple(one for challenge in found if challenge.edits for one in _of_base(challenge))


def _of_program(program: Program) -> Iterator[Patched]:
    for patch in (*program.bugs, *program.decoys):
        yield _patched_program(program, patch)
    for file in program.edit:
        text = program.files[file]
        yield Patched(base=program.slug, file=file, right=text, text=text, program=program)


def _patched_program(program: Program, patch: ProgramBug) -> Patched:
    files = apply_edits(program.files, patch.edits)
    file = patch.edits[0].file
    return Patched(
        base=program.slug,
        file=file,
        right=program.files[file],
        text=files[file],
        id=patch.id,
        decoy=patch.decoy,
        category=patch.category,
        symptom=patch.symptom,
        effect=patch.effect,
        why=patch.why.strip(),
        program=program,
        files=tuple(dict.fromkeys(edit.file for edit in patch.edits)),
    )


def _of_base(challenge: Challenge) -> Iterator[Patched]:
    if challenge.kind != "debug":
        return
    right = read_text(Path(challenge.solution))
    file = Path(challenge.solution).name
    shared: dict[str, Any] = {"base": challenge.base, "file": file, "challenge": challenge}
    shared |= {"right": right, "name": challenge.class_name, "files": (file,)}
    yield Patched(
        **shared,
        text=edited_solution(challenge, challenge.edits),
        id=challenge.name,
        category=challenge.category,
        symptom=challenge.symptom,
        why=notes_text(challenge).split("## ")[1].partition("\n")[2].strip(),
    )
    for name, edits in read_decoys(Path(challenge.folder)).items():
        why = read_document(Path(challenge.folder, "decoys", f"{name}.toml")).data["why"].strip()
        text = edited_solution(challenge, edits)
        yield Patched(**shared, text=text, id=name, decoy=True, why=why)
    yield Patched(**shared, text=right)


# ---------------------------------------------------------------- what is shown


def promised(one: Patched) -> tuple[str, ...]:
    """What the task says that a class does, or a program."""
    if one.program:
        sentences = re.split(r"(?<=[.]) (?=[A-Z`])", " ".join(one.program.task.split()))
        return tuple(f"* {each}" for each in sentences if "bugs" not in each)
    task = one.challenge.task if one.challenge else ""
    items = re.findall(r"^\* .*(?:\n +.*)*", task, re.MULTILINE)
    return tuple(" ".join(item.split()) for item in items)


class Excerpt(NamedTuple):
    first: int  # the number of its first line
    text: str

    def code(self, file: str, line: int | None = None) -> dict[str, Any]:
        """The fields of a question about it."""
        return {"code": self.text, "first": self.first, "line": line, "file": file}

    @property
    def last(self) -> int:
        return self.first + self.text.count("\n")


def excerpt(text: str, line: int, longest: int = LONGEST, until: int = 0) -> Excerpt:
    """The smallest whole class or function around a line, or around those until another one, that
    is not too long; what is longer is cut around them."""
    lines = text.splitlines()
    spans = sorted(_definitions(text), key=lambda span: span[0] - span[1])  # the longest first
    around = [(a, b) for a, b in spans if a <= line and max(line, until) <= b]
    fitting = [(a, b) for a, b in around if b - a < longest]
    if fitting:
        first, last = _with_neighbours(fitting[0], spans, longest)
    else:
        low, high = around[-1] if around else (1, len(lines))
        middle = (line + max(line, until)) // 2
        first = max(low, min(middle - longest // 2, high - longest + 1))
        last = min(high, first + longest - 1)
    return Excerpt(first, "\n".join(lines[first - 1 : last]))


def _with_neighbours(
    span: tuple[int, int], spans: Sequence[tuple[int, int]], longest: int
) -> tuple[int, int]:
    """A short definition with those beside it, so that there is something to read."""
    first, last = span
    while last - first + 1 < LEAST:
        beside = [(a, b) for a, b in spans if b < first or a > last]
        found = [(min(a, first), max(b, last)) for a, b in beside]
        near = min(found, key=lambda pair: pair[1] - pair[0], default=(first, last))
        if near == (first, last) or near[1] - near[0] >= longest:
            break
        first, last = near
    return first, last


def _definitions(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree_of(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield first, node.end_lineno or first


@lru_cache(maxsize=256)
def tree_of(text: str) -> ast.Module:
    with PARSING:
        return ast.parse(text)


def files_of(one: Patched) -> Files:
    """The files of a program with its bug in them."""
    assert one.program is not None
    patch = one.program.patches.get(one.id)
    return apply_edits(one.program.files, patch.edits if patch else ())

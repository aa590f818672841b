"""Read programs from folders `programs/NAME/`, and compose their files with some of their bugs.

program.toml   texts, the declared names, goals, and the round that `start` gives
base/          the right files, as a person would write them
units/         a contract for each class of the model that is graded alone
bugs/ decoys/  one patch of the right files each
styles/        other right programs, a folder each
stages/        tasks after the bugs, a folder each
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.catalogue import schema
from attnlab.catalogue.folders import PROGRAM_FILE
from attnlab.catalogue.patches import apply_edits, read_edits, read_files, read_styles
from attnlab.catalogue.program_entries import described
from attnlab.catalogue.program_schema import BUG, DECOY, FIXES, PROGRAM, UNIT
from attnlab.catalogue.stages import read_stages
from attnlab.catalogue.toml_rules import Document, read_document, table
from attnlab.errors import Refused, Unreadable
from attnlab.files import shown_path
from attnlab.records.program import (
    ENTRIES,
    FORWARD,
    PARTS,
    Files,
    Program,
    ProgramBug,
    Training,
    Unit,
)
from attnlab.suggest import did_you_mean

BUGS = 4  # of a round that is drawn
# Keys of program.toml that a program has as they are.
OWN = ("title", "level", "minutes", "symptom", "task", "source", "edit", "given", "goals")


# ---------------------------------------------------------------- reading


def read_program(folder: Path) -> Program:
    """The program in `folder`; raises `Unreadable`, which names file, line and key."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  resolve() follows links: another slug
    document = read_document(folder / PROGRAM_FILE)
    found = document.read(PROGRAM)
    files, units = _read_right(folder, found)
    training = _training(document, found["training"], units)
    bugs = tuple(_read_patch(path, files, found["edit"]) for path in described(folder / "bugs"))
    decoys = tuple(_read_patch(path, files, found["edit"]) for path in described(folder / "decoys"))
    program = Program(
        slug=f"{folder.parent.name}/{folder.name}",
        **{key: found[key] for key in OWN},
        folder=str(folder),
        files=files,
        training=training,
        units=units,
        bugs=bugs,
        decoys=decoys,
        chosen=found["round"],
        styles=read_styles(folder / "styles", files, found["edit"]),
        questions=found.get("questions", ()),
        stages=read_stages(folder / "stages", files, found["edit"]),
    )
    _check_ids(document, program)
    return program


def read_units(folder: Path) -> tuple[Files, tuple[Unit, ...]]:
    """The right files of the program in `folder`, and its units; raises `Unreadable`."""
    return _read_right(folder, read_document(folder / PROGRAM_FILE).read(PROGRAM))


def _read_right(folder: Path, found: Mapping[str, Any]) -> tuple[Files, tuple[Unit, ...]]:
    files = read_files(folder / "base", (*found["edit"], *found["given"]))
    return files, tuple(_read_unit(path, files) for path in described(folder / "units"))


def _read_unit(path: Path, files: Files) -> Unit:
    document = read_document(path)
    found = document.read(UNIT)
    contract = schema.build_contract(found)
    schema.check_consistency(document, contract)
    module, _, class_name = found["class"].partition(".")
    defined = re.compile(rf"^(class|def) {class_name}\b", re.MULTILINE)
    if not defined.search(files.get(f"{module}.py", "")):
        reason = f' = "{found["class"]}": base/ holds no such class or function'
        raise document.error(("class",), reason)
    return Unit(
        id=path.stem,
        title=found["title"],
        file=f"{module}.py",
        class_name=class_name,
        contract=contract,
    )


def _training(document: Document, found: dict[str, Any], units: Sequence[Unit]) -> Training:
    ids = [unit.id for unit in units]
    if "unit" in found and found["unit"] not in ids:
        hint = did_you_mean(found["unit"], ids) or f"units/ holds {', '.join(ids) or 'none'}."
        raise document.error(("training", "unit"), f' = "{found["unit"]}": no such unit', hint)
    names = (*ENTRIES, FORWARD, *PARTS.values())
    entries = {entry: found.pop(entry) for entry in names if entry in found}
    for entry, inputs in (("generate", "prompts"), ("predict", "items")):
        if (entry in entries) != (inputs in found):
            missing, other = (inputs, entry) if entry in entries else (entry, inputs)
            raise document.error(("training",), f" declares {other} without {missing}")
    return Training(entries=entries, **found)


def _read_patch(path: Path, files: Files, edit: Sequence[str]) -> ProgramBug:
    document = read_document(path)
    decoy = path.parent.name == "decoys"
    rule = table(DECOY, tuple(DECOY)) if decoy else table(BUG | FIXES, tuple(BUG))
    found = document.read(rule)
    edits = read_edits(document, found["edits"], files, edit, ("edits",))
    fixes = tuple(
        read_edits(document, fix["edits"], files, edit, ("fixes", number, "edits"))
        for number, fix in enumerate(found.get("fixes", ()))
    )
    return ProgramBug(id=path.stem, decoy=decoy, **(found | {"edits": edits, "fixes": fixes}))


def _check_ids(document: Document, program: Program) -> None:
    known = program.patches
    for index, patch in enumerate(program.chosen):
        if patch not in known:
            hint = did_you_mean(patch, known) or "bugs/ and decoys/ hold them."
            raise document.error(("round", index), f' = "{patch}": no such bug or decoy', hint)
    seers = seen_by_ids(program)
    for bug in program.bugs:
        for seer in bug.seen_by:
            if seer not in seers:
                file = shown_path(Path(program.folder) / "bugs" / f"{bug.id}.toml")
                hint = did_you_mean(seer, seers) or f"Known: {', '.join(seers)}."
                raise Unreadable(f'seen_by names "{seer}", which is no part or goal', hint, file)
    check_compatible(program, program.chosen)


def seen_by_ids(program: Program) -> list[str]:
    """The parts and goals by which a bug can be seen."""
    parts = [*(unit.id for unit in program.units), *program.training.parts]
    return [*parts, *(goal.id for goal in program.goals)]


# ---------------------------------------------------------------- rounds


def check_compatible(program: Program, ids: Sequence[str]) -> None:
    """Raise `Refused` where an id is unknown or two patches change the same place."""
    patches = program.patches
    for index, patch in enumerate(ids):
        if patch not in patches:
            hint = did_you_mean(patch, patches) or f"{program.name} has {', '.join(patches)}"
            raise Refused(f'{program.name} has no bug "{patch}"', hint, "--bugs")
        for other in ids[:index]:
            if patch == other or patches[patch].overlaps(patches[other]):
                said = "stands twice" if patch == other else f"changes the same place as {other}"
                raise Refused(f"{patch} {said}", "leave one of them out", "--bugs")


def draw_bugs(
    program: Program,
    seed: int,
    count: int = 0,
    level: int = 5,
    about: str = "",
    seen: Collection[str] = (),
) -> tuple[str, ...]:
    """So many bugs at different places, or BUGS where there are as many, and a decoy; the same for
    the same seed. None is above the level where that leaves enough; half of them are of the kind
    `about` where there are so many. What was `seen` before comes only where little else is left."""
    import random  # not before a round is drawn: help and lists are instant

    dice = random.Random(f"interview {program.slug} {seed} {count} {level}{about}")
    wanted = [bug for bug in program.bugs if bug.level <= level]
    others = [bug for bug in program.bugs if bug.level > level]
    easiest = sorted(dice.sample(others, len(others)), key=lambda bug: bug.level)
    known = sorted(dice.sample(wanted, len(wanted)), key=lambda bug: bug.id in seen)
    pool = [*known, *easiest]
    first = _disjoint((bug for bug in pool if bug.category == about), half_of(count), ())
    rest = (bug for bug in pool if bug not in first)
    chosen = _disjoint([*first, *rest], count or BUGS, ())
    if len(chosen) < count:
        says = f"{program.name} has no {count} bugs at different places"
        raise Refused(says, f"ask for {len(chosen)} at most", "--bugs")
    decoys = _disjoint(dice.sample(program.decoys, len(program.decoys)), 1, chosen)
    return tuple(sorted(patch.id for patch in (*chosen, *decoys)))


def half_of(count: int) -> int:
    """How many of so many bugs are of the kind that a round is about."""
    return (count + 1) // 2


def count_about(program: Program, about: str, count: int, level: int) -> int:
    """How many bugs of a round of so many can be of a kind, none of them above the level."""
    fitting = (bug for bug in program.bugs if bug.category == about and bug.level <= level)
    return len(_disjoint(fitting, half_of(count), ()))


def _disjoint(
    pool: Iterable[ProgramBug], count: int, beside: Sequence[ProgramBug]
) -> list[ProgramBug]:
    chosen: list[ProgramBug] = []
    for patch in pool:
        if len(chosen) < count and not any(patch.overlaps(o) for o in (*chosen, *beside)):
            chosen.append(patch)
    return chosen


def compose(program: Program, ids: Iterable[str]) -> Files:
    """The right files with these bugs and decoys in them."""
    edits = [edit for patch in ids for edit in program.patches[patch].edits]
    return apply_edits(program.files, edits)


def count_changed_lines(before: Files, after: Files) -> int:
    """How many lines differ in the files that both have; one in place of another is one."""
    from difflib import SequenceMatcher  # not before a round is compared: lists are instant

    pairs = ((before[name], text) for name, text in after.items() if name in before)
    return sum(
        max(i2 - i1, j2 - j1)
        for old, new in pairs
        for tag, i1, i2, j1, j2 in SequenceMatcher(
            None, old.splitlines(), new.splitlines(), autojunk=False
        ).get_opcodes()
        if tag != "equal"
    )

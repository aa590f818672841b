"""Read bases: right code that carries many bugs and tasks, each a challenge of its own.

base.toml         what holds for all of them: the class, its contract, the task
solution.py       the right file, as a person would write it
alternatives/     other right files
mutants/          wrong files that must be rejected, where a check needs one
bugs/ decoys/     one patch of the right file each; a bug's file name is the challenge's name
tasks/            patches that leave something to write, or to write better
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.catalogue.challenge_schema import (
    BASE,
    BASE_BUG,
    BASE_DECOY,
    BASE_TASK,
    check_format,
    read_contract,
)
from attnlab.catalogue.folders import (
    ALTERNATIVES,
    BASE_FILE,
    PATCHES,
    check_slug,
    find_file,
    find_files,
    read_slug,
)
from attnlab.catalogue.patches import read_edits, read_text
from attnlab.catalogue.toml_rules import Document, read_document
from attnlab.errors import AttnlabError, Unreadable
from attnlab.files import shown_path
from attnlab.records import Challenge, Contract, record
from attnlab.records.patch import Edit
from attnlab.suggest import did_you_mean

SABOTAGED = "sabotage"  # the topic of a user's own modules with a bug
SOLUTION = "solution.py"
PARTS = dict(zip(PATCHES, (BASE_BUG, BASE_TASK), strict=True))


@record
class Base:
    """A folder with a base.toml, as far as all its bugs share it."""

    slug: str
    folder: Path
    text: str  # of the right file
    found: dict[str, Any]  # what base.toml says
    contract: Contract
    alternatives: tuple[str, ...]
    mutants: tuple[str, ...]
    decoys: dict[str, tuple[Edit, ...]]


def read_base(folder: Path) -> tuple[list[Challenge], list[tuple[str, AttnlabError]]]:
    """The bugs and tasks of the base in `folder`; the slugs and errors of what cannot be read.

    Raises `Unreadable` where what they share cannot be.
    """
    base = read_shared(folder)
    good: list[Challenge] = []
    bad: list[tuple[str, AttnlabError]] = []
    for path in sorted(path for part in PARTS for path in (base.folder / part).glob("*.toml")):
        try:
            good.append(_read_part(base, path))
        except AttnlabError as error:
            bad.append((f"{folder.parent.name}/{path.stem}", error))
    if not (good or bad):
        raise Unreadable(
            "it has neither bugs/*.toml nor tasks/*.toml", "Add one.", shown_path(base.folder)
        )
    return good, bad


def read_decoys(folder: Path) -> dict[str, tuple[Edit, ...]]:
    """The decoys of the base in `folder`, by name; raises `Unreadable`."""
    return _decoys(folder, read_text(folder / SOLUTION))


def read_shared(folder: Path) -> Base:
    """What is the same for all bugs and tasks of the base in `folder`; raises `Unreadable`."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  resolve() follows links
    document = read_document(folder / BASE_FILE)
    check_format(document)
    found = document.read(BASE)
    text = read_text(Path(find_file(folder, SOLUTION)))
    yours = folder.parent.name == SABOTAGED  # of a user's own module there is one version
    return Base(
        slug=read_slug(folder),
        folder=folder,
        text=text,
        found=found,
        contract=read_contract(document, found),
        alternatives=find_files(folder, "alternatives", 0 if yours else ALTERNATIVES),
        mutants=find_files(folder, "mutants", 0),
        decoys=_decoys(folder, text),
    )


def _decoys(folder: Path, text: str) -> dict[str, tuple[Edit, ...]]:
    found = {}
    for path in sorted((folder / "decoys").glob("*.toml")):
        document = read_document(path)
        found[path.stem] = _edits(document, document.read(BASE_DECOY)["edits"], text)
    return found


def _edits(document: Document, said: list[dict[str, str]], text: str) -> tuple[Edit, ...]:
    inside = [{"file": SOLUTION, **each} for each in said]
    return read_edits(document, inside, {SOLUTION: text}, (SOLUTION,), ("edits",))


def _read_part(base: Base, path: Path) -> Challenge:
    check_slug(path.stem, path)
    document = read_document(path)
    said = document.read(PARTS[path.parent.name])
    promises = (*base.contract.promises, *said.get("promises", ()))
    return Challenge(
        slug=f"{base.folder.parent.name}/{path.stem}",
        title=said["title"],
        kind=said.get("kind", "debug"),
        level=said["level"],
        symptom=said["symptom"],
        task=said.get("task", base.found["task"]),
        class_name=base.found["class"],
        contract=replace(base.contract, promises=promises),
        reference=base.found["reference"],
        expected=said["expected"],
        source=said["source"],
        hints=said["hints"],
        folder=str(base.folder),
        file=str(base.folder / f"{path.stem}.py"),
        solution=str(base.folder / SOLUTION),
        alternatives=base.alternatives,
        mutants=base.mutants,
        notes=str(path),
        base=base.slug,
        edits=_edits(document, said["edits"], base.text),
        decoys=_decoys_of(base, document, said.get("decoys", ())),
        category=said["category"],
        follow_ups=said["follow_ups"],
        given=base.found.get("given", ()),
        then=said.get("then", ""),
    )


def _decoys_of(base: Base, document: Document, names: tuple[str, ...]) -> tuple[Edit, ...]:
    found: list[Edit] = []
    for index, name in enumerate(names):
        if name not in base.decoys:
            hint = did_you_mean(name, base.decoys) or "decoys/ holds them."
            raise document.error(("decoys", index), f' = "{name}": no such decoy', hint)
        found += base.decoys[name]
    return tuple(found)

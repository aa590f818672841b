"""Read the stages of a program: tasks after the bugs, a folder `stages/NAME/` each.

stage.toml     texts and checks
given/*.py     files that are put into the round's folder and not edited
solution/*.py  the right program's files that differ
styles/*/      other right ones
wrong/*.toml   wrong ones, as patches of the solution
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.catalogue.patches import read_edits, read_styles, read_text
from attnlab.catalogue.program_schema import SLIP, STAGE
from attnlab.catalogue.toml_rules import Document, read_document
from attnlab.records.program import Files, Slip, Stage
from attnlab.suggest import did_you_mean


def read_stages(folder: Path, files: Files, edit: Sequence[str]) -> tuple[Stage, ...]:
    """The stages in a folder, in their order; none where there is no such folder."""
    found = [_read_stage(path.parent, files, edit) for path in folder.glob("*/stage.toml")]
    return tuple(sorted(found, key=lambda stage: (stage.order, stage.id)))


def _read_stage(folder: Path, files: Files, edit: Sequence[str]) -> Stage:
    document = read_document(folder / "stage.toml")
    found = document.read(STAGE)
    given = {path.name: read_text(path) for path in sorted(folder.glob("given/*.py"))}
    if twice := given.keys() & files.keys():
        raise document.error((), f"given/{twice.pop()} is a file of the program already")
    base = files | given
    solution = read_styles(folder, base, edit).get("solution", base)
    ids = [check.id for check in found["checks"]]
    if len(set(ids)) < len(ids):
        raise document.error(("checks",), f": an id stands twice among {', '.join(ids)}")
    shared = found.pop("setup", "")
    checks = (replace(c, setup=f"{shared}\n{c.setup}".strip()) for c in found.pop("checks"))
    return Stage(
        id=folder.name,
        checks=tuple(checks),
        given=given,
        solution=solution,
        styles=read_styles(folder / "styles", base, edit),
        slips=tuple(
            _read_slip(read_document(path), path.stem, solution, edit, ids)
            for path in sorted(folder.glob("wrong/*.toml"))
        ),
        **found,
    )


def _read_slip(
    document: Document, name: str, solution: Files, edit: Sequence[str], checks: Sequence[str]
) -> Slip:
    found = document.read(SLIP)
    for index, seer in enumerate(found["seen_by"]):
        if seer not in checks:
            hint = did_you_mean(seer, checks) or f"Its checks are {', '.join(checks)}."
            raise document.error(
                ("seen_by", index), f' = "{seer}": the stage has no such check', hint
            )
    edits = read_edits(document, found.pop("edits"), solution, edit, ("edits",))
    return Slip(id=name, edits=edits, **found)

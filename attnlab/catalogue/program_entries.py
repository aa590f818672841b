"""Programs as `attnlab list` shows them: a command about a single file reads no more of them."""

from pathlib import Path

from attnlab.catalogue.folders import PROGRAM_FILE
from attnlab.records import record


@record
class ProgramEntry:
    """What `attnlab list` shows of a program."""

    slug: str
    title: str
    level: int
    minutes: int
    bugs: int
    folder: str
    source: str = ""
    stages: int = 0
    kind: str = "program"

    @property
    def topic(self) -> str:
        return self.slug.partition("/")[0]

    @property
    def name(self) -> str:
        return self.slug.partition("/")[2]


def read_program_entry(folder: Path) -> ProgramEntry:
    """The program in `folder` in a line; raises `Unreadable`."""
    from attnlab.catalogue.program_schema import PROGRAM
    from attnlab.catalogue.toml_rules import read_document

    found = read_document(folder / PROGRAM_FILE).read(PROGRAM)
    return ProgramEntry(
        slug=f"{folder.parent.name}/{folder.name}",
        **{key: found[key] for key in ("title", "level", "minutes", "source")},
        bugs=len(described(folder / "bugs")),
        folder=str(folder),
        stages=len(list(folder.glob("stages/*/stage.toml"))),
    )


def described(folder: Path) -> list[Path]:
    """The descriptions in a folder of a program, such as bugs/."""
    return sorted(folder.glob("*.toml"))

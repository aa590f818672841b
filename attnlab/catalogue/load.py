"""Read challenges from folders `<topic>/<slug>/`. A broken folder does not hide the others."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnlab.catalogue import schema
from attnlab.catalogue.programs import DESCRIPTION as PROGRAM_FILE
from attnlab.catalogue.programs import TOPIC as PROGRAMS
from attnlab.catalogue.programs import ProgramEntry, read_program_entry
from attnlab.catalogue.toml_rules import (
    Document,
    InvalidValue,
    Rule,
    describe,
    expected,
    fields_of,
    line,
    listing,
    matching,
    name,
    one_of,
    read_document,
    table,
    text,
    whole,
)
from attnlab.errors import AttnlabError, Broken, Refused, Unreadable
from attnlab.files import shown_path
from attnlab.records import FORMAT, Bug, Challenge, record
from attnlab.suggest import did_you_mean, either

DESCRIPTION = "challenge.toml"
TOPICS = ("attention", "position")  # in this order; topics of other catalogues follow
SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"
FILES = {"debug": "buggy.py", "implement": "starter.py"}
TASK_LINES = 20
ALTERNATIVES = 2
MUTANTS = 6


def _task(value: Any) -> str:
    said = text(value)
    if (count := said.count("\n") + 1) > TASK_LINES:
        raise expected(value, f"at most {TASK_LINES} lines, it has {count}")
    return said


def _reference(value: Any) -> str:
    if value == "solution.py":
        return "solution.py"
    try:
        return name(value)
    except InvalidValue:
        what = 'the name of a unit of attnlab/references/, or "solution.py"'
        raise expected(value, what) from None


KEYS: dict[str, Rule] = {
    "format": whole(FORMAT, FORMAT),
    "title": line,
    "kind": one_of(*FILES),
    "level": whole(1, 5),
    "class": name,
    "reference": _reference,
    "source": line,
    "symptom": text,
    "task": _task,
    "expected": listing(matching(SLUG, "the id of a check"), least=1),
    "hints": listing(text, least=3, most=3),
}
BUG = fields_of(
    Bug,
    {
        "id": matching(SLUG, "a name such as mask-inverted"),
        "checks": listing(matching(SLUG, "the id of a check"), least=1),
        "weight": whole(1, 100),
    },
    required=("id", "checks"),
)


def _bugs(value: Any) -> tuple[Bug, ...]:
    found: tuple[Bug, ...] = listing(BUG, least=2)(value)
    for index, bug in enumerate(found):
        if bug.id in (other.id for other in found[:index]):
            raise InvalidValue(
                f' = "{bug.id}": two bugs have this id', (index, "id"), "Rename one."
            )
    return found


TABLES = {**KEYS, "bugs": _bugs, **schema.TABLES}
CHALLENGE = table(TABLES, required=(*KEYS, "sizes", "inputs", "output"))


opened_topics: set[str] = set()  # topics of users' own catalogues: no candidate may read them


@record
class Catalogue:
    """The challenges in the order of `attnlab list`, and the errors of broken folders."""

    challenges: tuple[Challenge, ...]
    broken: tuple[AttnlabError, ...] = ()
    broken_slugs: tuple[str, ...] = ()  # of `broken`, in its order
    programs: tuple[ProgramEntry, ...] = ()

    def find(self, what: str) -> Challenge:
        """The challenge called `what`, a full slug or the bare name; raises where none is."""
        wanted = what.strip().rstrip("/")
        found = [c for c in self.challenges if wanted in (c.slug, c.name)]
        if self.find_program(wanted):
            hint = f"attnlab start {wanted} starts it; grade and run take it as well."
            raise Refused(f"{wanted} is a whole program, not a challenge of one file", hint)
        if len(found) == 1:
            return found[0]
        if found:
            hint = f"Write {either(c.slug for c in found)}."
            raise Refused(f'"{wanted}" names {len(found)} challenges', hint)
        for slug, error in zip(self.broken_slugs, self.broken, strict=True):
            if wanted in (slug, slug.partition("/")[2]):
                raise error
        raise Refused(f'no challenge is called "{wanted}"', self._hint(wanted))

    def find_program(self, what: str) -> ProgramEntry | None:
        """The program called `what`, if there is one; raises where it cannot be read."""
        wanted = what.strip().rstrip("/")
        for slug, error in zip(self.broken_slugs, self.broken, strict=True):
            if slug.startswith(f"{PROGRAMS}/") and wanted in (slug, slug.partition("/")[2]):
                raise error
        return next((p for p in self.programs if wanted in (p.slug, p.name)), None)

    def _hint(self, wanted: str) -> str:
        full = "/" in wanted
        units: tuple[Challenge | ProgramEntry, ...] = (*self.challenges, *self.programs)
        names = {(c.slug if full else c.name): c.slug for c in units}
        guess = did_you_mean(wanted, names) or did_you_mean(wanted, names.values())
        return guess or "attnlab list shows them all."


def load(extra: Path | None = None) -> Catalogue:
    """The shipped challenges and those of `extra`, or else of the folder ATTNLAB_CATALOGUE."""
    folders = list(_folders(shipped_folder()))
    said = "--catalogue" if extra else "ATTNLAB_CATALOGUE"
    more = extra or os.environ.get("ATTNLAB_CATALOGUE")
    if more:
        seen = {folder.resolve() for folder in folders}
        own = [f for f in _extra_folders(Path(more), said) if f.resolve() not in seen]
        opened_topics.update(str(folder.resolve().parent) for folder in own)
        folders += own
    return _read_all(folders)


def shipped_folder() -> Path:
    """Where attnlab's own challenges lie: inside the package, or beside it when editable."""
    package = Path(__file__).parent.parent
    for folder in (package / "challenges", package.parent / "challenges"):
        if folder.is_dir():
            return folder
    hint = "Install attnlab again: pip install --force-reinstall attnlab"
    raise Broken("the challenges that ship with attnlab are missing", hint, str(package))


def house_rules() -> str:
    """What every challenge asks, as Markdown."""
    return (shipped_folder() / "RULES.md").read_text("utf-8")


def read_challenge(folder: Path) -> Challenge:
    """The challenge in `folder`; raises `Unreadable`, which names file, line and key."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  resolve() follows links: another slug
    document = read_document(folder / DESCRIPTION)
    _check_format(document)
    found = document.read(CHALLENGE)
    contract = schema.build_contract(found)
    schema.check_consistency(document, contract)
    for argument in (*contract.arguments, *(held.name for held in contract.containers)):
        hint = "Give it a default in forward, or leave it out: the grader feeds tensors."
        raise document.error(("inputs", argument), ": a challenge is fed with tensors alone", hint)
    own = ("title", "kind", "level", "symptom", "task", "reference", "expected", "source", "hints")
    return Challenge(
        slug=_slug(folder),
        **{key: found[key] for key in own},
        class_name=found["class"],
        contract=contract,
        folder=str(folder),
        file=_file(folder, FILES[found["kind"]]),
        solution=_file(folder, "solution.py"),
        alternatives=_files(folder, "alternatives", ALTERNATIVES),
        mutants=_files(folder, "mutants", MUTANTS),
        notes=_file(folder, "notes.md"),
        bugs=found.get("bugs", ()),
    )


# ---------------------------------------------------------------- folders


def _folders(root: Path) -> Iterator[Path]:
    """The folders `<topic>/<slug>` under `root` that are not empty."""
    for topic in _subfolders(root):
        for folder in _subfolders(topic):
            if any(entry.name != "__pycache__" for entry in folder.iterdir()):
                yield folder


def _subfolders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and e.name[0] not in "._")
    return [folder / name for name in names]


def _extra_folders(root: Path, said: str) -> list[Path]:
    hint = "Name a folder that holds TOPIC/SLUG/challenge.toml."
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "does not exist"
        raise Refused(f"{said}: {root} {what}", hint, said)
    try:
        found = list(_folders(root))
    except OSError as error:
        raise Refused(f"{said}: {root} cannot be read: {error.strerror}", hint, said) from None
    if not any((f / name).exists() for f in found for name in (DESCRIPTION, PROGRAM_FILE)):
        raise Refused(f"{said}: {root} holds no TOPIC/SLUG/challenge.toml", hint, said)
    return found


def _read_all(folders: list[Path]) -> Catalogue:
    good: dict[str, Challenge] = {}
    programs: dict[str, ProgramEntry] = {}
    bad: list[tuple[str, AttnlabError]] = []
    for folder in folders:
        try:
            if folder.parent.name == PROGRAMS or (folder / PROGRAM_FILE).exists():
                entry = read_program_entry(folder)
                programs[entry.slug] = entry
                continue
            challenge = read_challenge(folder)
            _check_new_slug(challenge, good)
        except AttnlabError as error:
            bad.append((f"{folder.parent.name}/{folder.name}", error))
        else:
            good[challenge.slug] = challenge
    return Catalogue(
        challenges=tuple(sorted(good.values(), key=_order)),
        broken=tuple(error for _, error in bad),
        broken_slugs=tuple(slug for slug, _ in bad),
        programs=tuple(sorted(programs.values(), key=lambda p: (p.level, p.slug))),
    )


def _order(challenge: Challenge) -> tuple[int, str, int, str]:
    topic = challenge.topic
    place = TOPICS.index(topic) if topic in TOPICS else len(TOPICS)
    return place, topic, challenge.level, challenge.slug


def _check_new_slug(challenge: Challenge, good: dict[str, Challenge]) -> None:
    if challenge.slug in good:
        other = shown_path(Path(good[challenge.slug].folder))
        folder = shown_path(Path(challenge.folder))
        hint = "Rename this folder: the slug is the folder's name."
        raise Unreadable(f"{challenge.slug} already exists in {other}", hint, folder)


# ---------------------------------------------------------------- one folder


def _check_format(document: Document) -> None:
    """Check this first: in another format, the other keys may mean other things."""
    says = f"this attnlab reads format {FORMAT}"
    found = document.data.get("format")
    if found is None:
        raise document.error(("format",), f": missing; {says}", f"Add format = {FORMAT}.")
    if found != FORMAT or isinstance(found, bool):
        newer = isinstance(found, int) and found > FORMAT
        hint = "Update attnlab." if newer else f"Write format = {FORMAT}."
        raise document.error(("format",), f" = {describe(found)}: {says}", hint)


def _slug(folder: Path) -> str:
    for part in (folder.parent.name, folder.name):
        if not re.fullmatch(SLUG, part):
            hint = "Rename it, for example to too-sharp: it is typed on the command line."
            says = f'"{part}" is not a slug: use lower-case letters, digits and single hyphens'
            raise Unreadable(says, hint, shown_path(folder))
    return f"{folder.parent.name}/{folder.name}"


def _file(folder: Path, name: str) -> str:
    path = folder / name
    if not path.is_file():
        hint = "docs/challenge-format.md lists the files of a challenge."
        raise Unreadable(f"{name} is missing", hint, shown_path(path))
    return str(path)


def _files(folder: Path, name: str, least: int) -> tuple[str, ...]:
    """The Python files of a subfolder; raises `Unreadable` where there are fewer than `least`."""
    found: list[str] = []
    if (folder / name).is_dir():
        with os.scandir(folder / name) as entries:
            found = sorted(e.path for e in entries if _is_source(e))
    if len(found) < least:
        hint = f"Add {least - len(found)} more; docs/challenge-format.md says what they are for."
        says = f"{name}/*.py: found {len(found)}, but at least {least} are needed"
        raise Unreadable(says, hint, shown_path(folder / name))
    return tuple(found)


def _is_source(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") and entry.name[0] not in "._" and entry.is_file()

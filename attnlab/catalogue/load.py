"""Read challenges from folders `<topic>/<slug>/`. A broken folder does not hide the others."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from attnlab.catalogue.folders import (
    ALTERNATIVES,
    BASE_FILE,
    PATCHES,
    PROGRAM_FILE,
    PROGRAMS,
    find_file,
    find_files,
    read_slug,
)
from attnlab.catalogue.program_entries import ProgramEntry, read_program_entry
from attnlab.errors import AttnlabError, Broken, Refused, Unreadable
from attnlab.files import data_folder, shown_path
from attnlab.records import Challenge, record
from attnlab.suggest import did_you_mean, either

DESCRIPTION = "challenge.toml"
TOPICS = ("attention", "position")  # in this order; topics of other catalogues follow
DRAWN = "drawn"  # the topic of challenges that were drawn for this user
PAGES = Path(__file__).with_name("pages")  # on a subject, in Markdown
MUTANTS = 6


opened_topics: set[str] = set()  # topics of users' own catalogues: no candidate may read them


@record
class _Reading:
    """What was read of some folders."""

    challenges: tuple[Challenge, ...]
    broken: tuple[AttnlabError, ...]
    broken_slugs: tuple[str, ...]  # of `broken`, in its order
    programs: tuple[ProgramEntry, ...]


class Catalogue:
    """The challenges in the order of `attnlab list`, and the errors of broken folders.

    Folders are read when they are asked for: one of them where a name says which, or all.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        """Of the folders `<topic>/<slug>`."""
        self._folders = tuple(folders)

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders, those of programs among them, none of them read."""
        return self._folders

    @cached_property
    def _all(self) -> _Reading:
        return _read_all(self._folders)

    @property
    def challenges(self) -> tuple[Challenge, ...]:
        return self._all.challenges

    @cached_property
    def programs(self) -> tuple[ProgramEntry, ...]:
        """Those that can be read; no challenge is read for them."""
        return _read_all([f for f in self._folders if _is_program(f)]).programs

    @property
    def broken(self) -> tuple[AttnlabError, ...]:
        return self._all.broken

    @property
    def broken_slugs(self) -> tuple[str, ...]:
        """The slugs of what is broken, in the order of `broken`."""
        return self._all.broken_slugs

    def find(self, what: str) -> Challenge:
        """The challenge called `what`, a full slug or the bare name; raises where none is."""
        wanted = _name(what)
        if self.find_program(wanted):
            hint = f"attnlab start {wanted} starts it; grade and run take it as well."
            raise Refused(f"{wanted} is a whole program, not a challenge of one file", hint)
        folders = [f for f in self._folders if _may_hold(f, wanted)]
        found = _named(_read_all(folders).challenges if len(folders) == 1 else (), wanted)
        found = found or _named(self.challenges, wanted)
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
        wanted = _name(what)
        read = _read_all([f for f in self._folders if wanted in _names(f) and _is_program(f)])
        if read.broken:
            raise read.broken[0]
        return next(iter(read.programs), None)

    def find_base(self, what: str) -> list[Challenge]:
        """The bugs of the base called `what`; none where there is no such base."""
        wanted = _name(what)
        folders = [f for f in self._folders if wanted in _names(f) and not _is_program(f)]
        return [c for c in _read_all(folders).challenges if c.base]

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
    with suppress(OSError, RuntimeError):  # most users have none
        folders += _folders(drawn_folder())
    return Catalogue(folders)


def drawn_folder() -> Path:
    """Where challenges are kept that were drawn for this user; raises as `data_folder` does."""
    return data_folder() / "challenges"


def shipped_folder() -> Path:
    """Where attnlab's own challenges lie: inside the package, or beside it when editable."""
    package = Path(__file__).parent.parent
    for folder in (package / "challenges", package.parent / "challenges"):
        if folder.is_dir():
            return folder
    hint = "Install attnlab again: pip install --force-reinstall attnlab"
    raise Broken("the challenges that ship with attnlab are missing", hint, str(package))


def pages() -> dict[str, str]:
    """The pages that `attnlab explain` shows, by name, with their titles."""
    names = ["rules", *sorted(p.stem for p in PAGES.glob("*.md"))]
    return {name: page_text(name).partition("\n")[0].lstrip("# ") for name in names}


def page_text(name: str) -> str:
    """A page as Markdown; "rules" is what every challenge asks."""
    path = shipped_folder() / "RULES.md" if name == "rules" else PAGES / f"{name}.md"
    return path.read_text("utf-8")


def read_challenge(folder: Path) -> Challenge:
    """The challenge in `folder`; raises `Unreadable`, which names file, line and key."""
    # A command about the user's own file asks for no challenge, and does not wait for these.
    from attnlab.catalogue.challenge_schema import CHALLENGE, FILES, check_format, read_contract
    from attnlab.catalogue.toml_rules import read_document

    folder = Path(os.path.abspath(folder))  # noqa: PTH100  resolve() follows links: another slug
    document = read_document(folder / DESCRIPTION)
    check_format(document)
    found = document.read(CHALLENGE)
    contract = read_contract(document, found)
    own = ("title", "kind", "level", "symptom", "task", "reference", "expected", "source", "hints")
    return Challenge(
        slug=read_slug(folder),
        **{key: found[key] for key in own},
        class_name=found["class"],
        contract=contract,
        folder=str(folder),
        file=find_file(folder, FILES[found["kind"]]),
        solution=find_file(folder, "solution.py"),
        alternatives=find_files(folder, "alternatives", ALTERNATIVES),
        mutants=find_files(folder, "mutants", MUTANTS),
        notes=find_file(folder, "notes.md"),
        bugs=found.get("bugs", ()),
        category=found.get("category", ""),
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
    known = (DESCRIPTION, BASE_FILE, PROGRAM_FILE)
    if not any((f / name).exists() for f in found for name in known):
        raise Refused(f"{said}: {root} holds no TOPIC/SLUG/challenge.toml", hint, said)
    return found


def _name(what: str) -> str:
    return what.strip().rstrip("/")


def _names(folder: Path) -> tuple[str, str]:
    return folder.name, f"{folder.parent.name}/{folder.name}"


def _is_program(folder: Path) -> bool:
    return folder.parent.name == PROGRAMS or (folder / PROGRAM_FILE).exists()


def _may_hold(folder: Path, wanted: str) -> bool:
    """Whether a challenge of the folder may be called so, as its files are named."""
    topic, _, name = wanted.rpartition("/")
    if topic and topic != folder.parent.name:
        return False
    files = (f"{folder}/{part}/{name}.toml" for part in PATCHES)
    return folder.name == name or any(map(os.path.exists, files))  # of Paths, it raises


def _named(challenges: Iterable[Challenge], wanted: str) -> list[Challenge]:
    return [c for c in challenges if wanted in (c.slug, c.name)]


def _read_all(folders: Iterable[Path]) -> _Reading:
    good: dict[str, Challenge] = {}
    programs: dict[str, ProgramEntry] = {}
    bad: list[tuple[str, AttnlabError]] = []
    for folder in folders:
        try:
            if _is_program(folder):
                entry = read_program_entry(folder)
                programs[entry.slug] = entry
                continue
            found, wrong = _read_folder(folder)
            bad += wrong
        except AttnlabError as error:
            bad.append((f"{folder.parent.name}/{folder.name}", error))
            continue
        for challenge in found:
            try:
                _check_new_slug(challenge, good)
            except AttnlabError as error:
                bad.append((challenge.slug, error))
            else:
                good[challenge.slug] = challenge
    return _Reading(
        challenges=tuple(sorted(good.values(), key=_order)),
        broken=tuple(error for _, error in bad),
        broken_slugs=tuple(slug for slug, _ in bad),
        programs=tuple(sorted(programs.values(), key=lambda p: (p.level, p.slug))),
    )


def _read_folder(folder: Path) -> tuple[list[Challenge], list[tuple[str, AttnlabError]]]:
    """The challenges of a folder, and the slugs and errors of those that cannot be read."""
    if (folder / BASE_FILE).exists():
        from attnlab.catalogue.bases import read_base

        return read_base(folder)
    return [read_challenge(folder)], []


def _order(challenge: Challenge) -> tuple[int, str, int, str]:
    topic = challenge.topic
    place = TOPICS.index(topic) if topic in TOPICS else len(TOPICS)
    return place, topic, challenge.level, challenge.slug


def _check_new_slug(challenge: Challenge, good: dict[str, Challenge]) -> None:
    if challenge.slug in good:
        other = shown_path(Path(good[challenge.slug].folder))
        folder = shown_path(Path(challenge.folder))
        hint = "Rename it: a folder, or a file in bugs/, is called as its challenge."
        raise Unreadable(f"{challenge.slug} already exists in {other}", hint, folder)

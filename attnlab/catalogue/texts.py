"""The texts of a challenge: the file that it ships, the right one, and its notes."""

from pathlib import Path

from attnlab.catalogue.patches import apply_edits, read_text
from attnlab.catalogue.toml_rules import read_document
from attnlab.records import Challenge, Code
from attnlab.records.patch import Edit

HEADINGS = ("Why it is wrong", "How one finds it", "Where it comes from")
TASK_HEADINGS = ("How it works", "How one tests it", "Where it is asked")
ASKED = "What an interviewer asks next"
MARK = "# attnlab: "  # and the slug: the first line of a started file


def shipped_text(challenge: Challenge) -> str:
    """The file with the bug, or with blanks."""
    if not challenge.base:
        return read_text(Path(challenge.file))
    return edited_solution(challenge, (*challenge.edits, *challenge.decoys))


def solution_text(challenge: Challenge) -> str:
    """The right file, with the decoys of the one that is shipped."""
    return edited_solution(challenge, challenge.decoys)


def edited_solution(challenge: Challenge, edits: tuple[Edit, ...]) -> str:
    """The right file with these edits made."""
    right = Path(challenge.solution)
    return apply_edits({right.name: read_text(right)}, edits)[right.name]


def mark(challenge: Challenge) -> str:
    """The line that a started file begins with."""
    return f"{MARK}{challenge.slug}\n"


def shipped_code(challenge: Challenge) -> Code:
    """The shipped file as code to run, as it is started: so its lines have the same numbers."""
    path = Path(challenge.file)
    return Code(file=path.name, text=mark(challenge) + shipped_text(challenge), path=challenge.file)


def headings(challenge: Challenge) -> tuple[str, ...]:
    """What the notes are about."""
    return TASK_HEADINGS if challenge.base and challenge.kind != "debug" else HEADINGS


def notes_text(challenge: Challenge) -> str:
    """The notes as Markdown: why it is wrong, how one finds it, where it was seen."""
    if not challenge.base:
        return read_text(Path(challenge.notes))
    said = read_document(Path(challenge.notes)).data
    keys = ("why", "find") if challenge.kind == "debug" else ("how", "test")
    texts = (*(said[key] for key in keys), _origin(challenge.source))
    told = zip(headings(challenge), texts, strict=True)
    parts = [f"## {heading}\n\n{text.strip()}\n" for heading, text in told]
    asked = [f"* {each.question}\n\n  {each.answer}\n" for each in challenge.follow_ups]
    return "\n".join([*parts, f"## {ASKED}\n", *asked])


def _origin(source: str) -> str:
    """A sentence on where a bug was seen; many were made for practice."""
    if source.startswith("constructed"):
        return f"Nobody reported it: it was made for practice{source.removeprefix('constructed')}."
    return f"It was {source}." if source.startswith("reported") else f"{source}."

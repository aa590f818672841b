"""What `attnlab start` notes in the folder of a round: which program it is, and its bugs."""

import binascii
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import Unreadable
from attnlab.files import read_bytes, shown_path
from attnlab.records import FORMAT, record

MARK = ".attnlab.json"  # in the folder
LARGEST = 64 << 10


@record
class RoundMark:
    """What the folder of a round says of itself."""

    program: str  # its slug
    bugs: tuple[str, ...]  # bugs and decoys that it was given
    stage: str = ""  # the one after the bugs that is open


def mark_text(program: str, bugs: Sequence[str], stage: str = "") -> str:
    """The note on a round of the program with this slug."""
    known = {"format": FORMAT, "program": program, "bugs": _hidden(bugs)}
    return json.dumps(known | ({"stage": stage} if stage else {})) + "\n"


def read_mark(folder: Path) -> RoundMark | None:
    """What `attnlab start` noted in the folder; None where there is no note, or none to be read."""
    path = folder / MARK
    if not path.is_file():
        return None
    try:
        found = json.loads(read_bytes(path, shown_path(path), LARGEST))
        if found["format"] != FORMAT:
            raise Unreadable(
                f"{path} was written by another version of attnlab (format {found['format']})",
                f"attnlab reset {folder.name} writes the round anew and keeps your files",
                str(path),
            )
        bugs, stage = _shown(found["bugs"]), str(found.get("stage", ""))
        return RoundMark(program=str(found["program"]), bugs=bugs, stage=stage)
    except (ValueError, KeyError, TypeError, zlib.error):
        return None


def _hidden(bugs: Sequence[str]) -> str:
    """Ids that nobody reads by accident: they would name what is to be found."""
    return binascii.b2a_base64(
        zlib.compress(json.dumps(list(bugs)).encode()), newline=False
    ).decode()


def _shown(text: Any) -> tuple[str, ...]:
    return tuple(map(str, json.loads(zlib.decompress(binascii.a2b_base64(text)))))

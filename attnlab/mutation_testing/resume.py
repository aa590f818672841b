"""What was measured before: a long measurement that was ended goes on where it was.

One line for each base, appended when it is done. A line holds for the same files of the base, the
same sources of attnlab and the same seeds.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import attnlab
from attnlab.errors import Refused
from attnlab.mutation_testing.measure import Strength
from attnlab.records import from_json, plain

SHORT = 12  # digits of a digest that is shown


class MeasuredBases:
    """The lines of a file that need not exist; nothing is read or written without one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Strength] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):  # cut off, or of another version
                    entry = json.loads(line)
                    self.known[entry["key"]] = from_json(Strength, json.dumps(entry["strength"]))

    def get(self, key: str) -> Strength | None:
        return self.known.get(key)

    def add(self, key: str, strength: Strength) -> None:
        """Remember it from now on; raises `Refused` where the file cannot be written."""
        if self.path is None:
            return
        line = json.dumps({"key": key, "strength": plain(strength)})
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}\n")  # also after a line that was cut off
        except OSError as error:
            raise Refused(
                f"{self.path} cannot be written: {error.strerror}", "name another file", "--resume"
            ) from error


def measurement_key(folder: str, *settings: object) -> str:
    """What a measurement of the base in `folder` depends on, as one short text."""
    return _digest([f"{folder_digest(folder)} {package_digest()} {settings}".encode()])


def folder_digest(folder: str) -> str:
    """Digits that change with any file of a base."""
    return _files_digest(Path(folder), "*")


@cache
def package_digest() -> str:
    """Digits that change with any source of attnlab."""
    return _files_digest(Path(attnlab.__file__).parent, "*.py")


def _files_digest(folder: Path, pattern: str) -> str:
    files = sorted(p for p in folder.rglob(pattern) if p.is_file() and p.suffix != ".pyc")
    parts = (part for p in files for part in (str(p.relative_to(folder)).encode(), p.read_bytes()))
    return _digest(parts)


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(b"%d " % len(part) + part)
    return found.hexdigest()[:SHORT]

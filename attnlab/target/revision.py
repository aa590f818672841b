"""A user's own code as it was at a commit, with the files of its repository that it may import."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attnlab.errors import Refused, Unreadable
from attnlab.files import shown_path
from attnlab.target.find_target import find_target

REVISION = re.compile(r"^(?P<target>[^@]+)@(?P<revision>[\w./~^{}-]+)(?P<name>:\w+)?$")
SECONDS = 60.0  # for git, whose repository may be large


@contextmanager
def past_version(said: str) -> Iterator[tuple[str, str]]:
    """`file.py@HEAD~3:Class` or `package.module:Class@HEAD~3` as a target that lies in a folder for
    as long as the context lasts, and what messages call its file. Where no commit is named: `said`
    and "". Raises `Refused` or `Unreadable`."""
    past = REVISION.match(said)
    if past is None:
        yield said, ""
        return
    target, revision = past["target"], past["revision"]
    place, _, name = target.partition(":") if not target.endswith(".py") else (target, "", "")
    file = Path(place) if place.endswith(".py") else Path(find_target(target, "diff").code.path)
    if not file.is_file() and not place.endswith(".py"):
        raise Refused(f"{place}: no such module", "name a file, as in model.py@HEAD~1", said)
    shown = shown_path(file)
    top = Path(_git(said, file.parent, "rev-parse", "--show-toplevel").decode().strip())
    inside = file.resolve().relative_to(top.resolve()).as_posix()
    if not _git(said, file.parent, "ls-tree", "--full-tree", "--name-only", revision, inside):
        hint = f"git log --oneline {shown} lists the commits of the file"
        raise Unreadable(f"{place}@{revision}: the file was not there", hint, shown)
    with TemporaryDirectory(prefix="attnlab-past-") as folder:
        beside = [Path(inside).parent.as_posix()] if "/" in inside else []
        packed = _git(said, top, "archive", "--format=tar", revision, "--", "*.py", *beside)
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        name = past["name"] or (f":{name}" if name else "")
        yield f"{Path(folder, inside)}{name}", f"{shown}@{revision}"


def _git(said: str, folder: Path, *asked: str) -> bytes:
    """What git says in a folder; raises `Unreadable` where it refuses."""
    command = ["git", "-C", str(folder), *asked]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"git cannot be asked: {error}", "is it installed?", said) from None
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["git said no"]
        hint = "git log --oneline lists the commits"
        raise Unreadable(f"{said}: {why[0].removeprefix('fatal: ')}", hint, said)
    return done.stdout

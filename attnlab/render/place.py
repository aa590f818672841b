"""Where something stands, and how large it is, in few characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attnlab.records import Trace
from attnlab.render.screen import Marks

LONGEST = 18  # characters of a file's name in a table


def format_place(file: str, line: int, names: Mapping[str, str] | None = None) -> str:
    """`net.py:31`; the line alone where `names` has nothing for its file."""
    name = file.replace("\\", "/").rpartition("/")[2] if names is None else names.get(file, "")
    return f"{name}:{line}" if name else str(line)


def file_labels(trace: Trace) -> dict[str, str]:
    """What the files of a trace are called in its table: the main one needs no name."""
    files = Counter(op.file for op in trace.ops)
    if trace.crash:
        files[trace.crash.file] += 0
    home = files.most_common(1)[0][0] if files else ""
    return {home: "", **short_names({file for file in files if file not in (home, "")})}


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Each file's name, with as many folders as it takes to tell it from the others, cropped."""
    parts = {file: file.replace("\\", "/").strip("/").split("/") for file in files}
    found: dict[str, str] = {}
    for file, path in parts.items():
        others = [other for name, other in parts.items() if name != file]
        count = 1
        while count < len(path) and any(o[-count:] == path[-count:] for o in others):
            count += 1
        found[file] = _crop_name("/".join(path[-count:]).removesuffix(".py"))
    return found


def _crop_name(name: str) -> str:
    return name if len(name) <= LONGEST else f"..{name[2 - LONGEST :]}"


def format_shape(sizes: Sequence[int], marks: Marks) -> str:
    return marks.times.join(str(size) for size in sizes)

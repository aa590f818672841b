"""Numbers, places and shapes as they stand in a table: three digits, units, few characters."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attnlab.records import Op, Trace
from attnlab.render.screen import Marks

LONGEST = 18  # characters of a file's name in a table


def format_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3g}"


def value_range(op: Op, dots: str) -> str:
    """The range of a row's values."""
    if op.min is None or op.max is None:
        return ""
    low, high = format_number(op.min), format_number(op.max)
    return low if low == high else f"{low} {dots} {high}"


def has_nan_or_inf(op: Op) -> bool:
    """True for NaN and +inf; -inf is what a mask leaves behind."""
    return op.nan or (op.inf and op.max == math.inf)


def format_seconds(value: float | None) -> str:
    """`12.3 us`, `4.56 ms`, `1.2 s`."""
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


# ---------------------------------------------------------------- places and shapes


def format_place(file: str, line: int, names: Mapping[str, str] | None = None) -> str:
    """`net.py:31`; the line alone where `names` has nothing for its file."""
    name = file.replace("\\", "/").rpartition("/")[2] if names is None else names.get(file, "")
    return f"{name}:{line}" if name else str(line)


def format_lines(file: str, lines: Iterable[int], names: Mapping[str, str], between: str) -> str:
    """`lines 3, 5`, or `net:3, 5` where the file has a name; `between` stands between numbers."""
    name, numbers = names.get(file, ""), [str(line) for line in lines]
    word = f"{name}:" if name else "line " if len(numbers) == 1 else "lines "
    return f"{word}{between.join(numbers)}" if numbers else name


def file_labels(trace: Trace, home: str = "") -> dict[str, str]:
    """What the files of a trace are called in its table: a name for each, but for a single one that
    is `home`, which stands above the table, or where nothing does."""
    files = {op.file for op in trace.ops} | ({trace.crash.file} if trace.crash else set())
    files.discard("")
    alone = len(files) == 1 and (not home or Path(home).name in {Path(f).name for f in files})
    return {} if alone else short_names(files)


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

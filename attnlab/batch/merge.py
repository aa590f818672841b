"""One run of several that graded parts of a class, on machines that need not know each other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.batch.run import BatchStore, difference
from attnlab.errors import Refused
from attnlab.files import shown_path


def parse_shard(text: str) -> tuple[int, int]:
    """`2/8` as the second of eight parts; raises `Refused`."""
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number[:9]) <= int(count[:9]):
        return int(number), int(count)
    raise Refused(f"--shard {text}: a part of so many is needed", "as in 2/8", "--shard")


def _missing(held: set[str]) -> list[str]:
    """The parts of the class that no run holds."""
    count = max((int(part.partition("/")[2]) for part in held), default=0)
    return [part for n in range(1, count + 1) if (part := f"{n}/{count}") not in held]


def merge_runs(into: BatchStore, parts: Sequence[Path], partial: bool = False) -> None:
    """Put the verdicts of all parts into one run; raises `Refused` where they do not belong
    together, before anything is written."""
    stores = [BatchStore(path, writing=False) for path in parts]
    runs = [store.require_run() for store in stores]
    digests: dict[str, tuple[str, Path]] = {}
    doubled = 0
    for store, run in zip(stores, runs, strict=True):
        if other := difference(runs[0], run):
            both = f"{shown_path(parts[0])} and {shown_path(store.path)}"
            hint = "grade them alike: one challenge, version, limits and --seed"
            raise Refused(f"{both} do not belong together: {other}", hint)
        for one in store.graded():
            doubled += one.name in digests
            digest, path = digests.setdefault(one.name, (one.digest, store.path))
            if digest != one.digest:
                both = f"{shown_path(path)} and {shown_path(store.path)}"
                raise Refused(f"{both} graded different files of {one.name}", "leave one out")
    held = {part for run in runs for part in run.parts}
    missing = _missing(held)
    if missing and not partial:
        hint = "name its run too, or merge what there is with --partial"
        raise Refused(f"parts are missing: {', '.join(missing)}", hint)
    total = sum(run.total for run in runs) - doubled
    kept = tuple(sorted(held)) if missing else ()
    into.begin(replace(runs[0], total=total, parts=kept), resume=False)
    for store in reversed(stores):  # of two verdicts on one submission the first part's stays
        for one in store.graded():
            into.add(one)
        store.close()

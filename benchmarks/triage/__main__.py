"""How often `attnlab triage` names the cause of a bug, and how often it is wrong about right code.

    python -m benchmarks.triage [FOLDER] [--unopened FOLDER] [--only NAME] [--write FILE]

FOLDER holds `open/*/item.toml` (wrong files, each with its causes and lines, and `right.py`) and
`right/*.py`; by default it is this one. An item counts as found at rank k where the k-th suspicion
is of a rule that stands for one of its causes (`causes.toml`), and stands at one of its lines, or
at none. `unopened.tar.xz` is the half that was written by others before the rules; unpack it into a
folder and name that with `--unopened`. `--write docs/triage-accuracy.md` renews that page; what it
says of the half that is not opened stays.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from attnlab.records import Limits, Suspicion, Triage
from attnlab.suspicions import Wishes, make_triage
from attnlab.target.command_line import TraceCommand
from attnlab.target.triage_target import look_at, triage_job
from attnlab.worker.client import Worker
from benchmarks.triage.pages import FIRSTS, Outcome, Right, counted_before, page, share
from benchmarks.triage.timing import measured, of_import, of_own_steps

HERE = Path(__file__).parent
NEAR = 3  # lines that a suspicion may be away from the fault
SECONDS = 60


class Item(NamedTuple):
    folder: Path
    kind: str
    target: str
    causes: tuple[str, ...]
    lines: tuple[tuple[int, int], ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--unopened", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--rights", action="store_true", help="only files that are right")
    given = parser.parse_args()
    rules = tomllib.loads((HERE / "causes.toml").read_text("utf-8"))
    console = Console(width=140)
    os.environ["ATTNLAB_SERVER"] = "no"  # each worker imports torch, and its seconds are counted
    halves = [(given.folder, "open")]
    halves += [(given.unopened, "unopened")] if given.unopened else []
    wrong = [
        _tried(item, rules, half, bool(given.write))
        for folder, half in halves
        for item in ([] if given.rights else _items(folder))
        if given.only in item.folder.name
    ]
    if wrong:
        _show_wrong(wrong, console)
    rights = [
        _tried_right(path, name, half)
        for folder, half in halves
        for path, name in _right_files(folder)
        if given.only in str(path)
    ]
    alarms = [right for right in rights if right.outcome != "nothing-found"]
    console.print(f"{len(alarms)} of {len(rights)} right files raise an alarm")
    for right in alarms:
        console.print(f"  {right.name}  {right.outcome}  {right.said}", markup=False)
    if given.write:
        if not given.unopened and given.write.exists():
            more = counted_before(given.write.read_text("utf-8"))
            wrong, rights = wrong + more[0], rights + more[1]
        given.write.write_text(page(wrong, rights, of_import()), encoding="utf-8")
    return 0


def _items(folder: Path) -> Iterator[Item]:
    for path in sorted(folder.glob("**/item.toml")):
        told = tomllib.loads(path.read_text("utf-8"))
        spans = tuple((span[0], span[-1]) for span in told["lines"])
        yield Item(path.parent, told["kind"], told["target"], tuple(told["causes"]), spans)


def _right_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that are right, each with the target to name."""
    for item in _items(folder):
        path = item.folder / "right.py"
        if path.is_file():
            yield path, path.name + item.target.partition(".py")[2]
    yield from ((path, path.name) for path in sorted(folder.glob("right/*.py")))


def _triage(folder: Path, target: str) -> Triage:
    """What `attnlab triage TARGET` finds, run in the target's folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        typed = TraceCommand(target=target, verb="triage")
        job = triage_job(typed, Limits(seconds=SECONDS))
        with Worker() as worker:
            report = look_at(typed, job, worker.run_job, lambda _: None)
        return make_triage(target, report, Wishes())
    except Exception as error:
        return Triage(target=target, outcome="error", message=f"{type(error).__name__}: {error}")
    finally:
        os.chdir(before)


def _tried(item: Item, rules: dict[str, list[str]], half: str, timed: bool) -> Outcome:
    found, seconds = measured(lambda: _triage(item.folder, item.target))
    right = next((s for s in found.suspicions if _is_right(s, item, rules)), None)
    first = found.suspicions[0] if found.suspicions else None
    scripts = timed and item.kind == "script"
    return Outcome(
        name=item.folder.name,
        kind=item.kind,
        rank=right.rank if right else 0,
        first=f"{first.rule}:{first.line}" if first else (found.message or found.outcome)[:60],
        alarms=sum(s.severity != "note" for s in found.suspicions),
        seconds=seconds,
        causes=", ".join(item.causes),
        place=", ".join(f"{a}-{b}" if a != b else str(a) for a, b in item.lines),
        right=right.rule if right else "",
        half=half,
        own=of_own_steps(item.folder, item.target) if scripts else 0.0,
    )


def _tried_right(path: Path, target: str, half: str) -> Right:
    found, seconds = measured(lambda: _triage(path.parent, target))
    first = next(iter(found.suspicions), None)
    said = f"{first.rule} {first.line}: {first.message[:150]}" if first else found.message
    name = f"{path.parent.name}/{path.name}"
    return Right(name=name, outcome=found.outcome, said=said, seconds=seconds, half=half)


def _is_right(suspicion: Suspicion, item: Item, rules: dict[str, list[str]]) -> bool:
    if not set(rules.get(suspicion.rule, ())) & set(item.causes):
        return False
    line = suspicion.line
    return not line or any(a - NEAR <= line <= b + NEAR for a, b in item.lines)


def _show_wrong(wrong: list[Outcome], console: Console) -> None:
    table = Table("item", "kind", "rank", "causes", "lines", "told first", "alarms", "s")
    for o in wrong:
        rank = str(o.rank or "-")
        row = (o.name, o.kind, rank, o.causes, o.place, o.first, str(o.alarms), f"{o.seconds:.1f}")
        table.add_row(*row)
    console.print(table)
    for kind in ("module", "script", ""):
        some = [o for o in wrong if kind in ("", o.kind)]
        if not some:
            continue
        console.print(
            f"{kind or 'all'}: first {share(some, 1)}, among the first {FIRSTS} "
            f"{share(some, FIRSTS)}"
        )


if __name__ == "__main__":
    sys.exit(main())
